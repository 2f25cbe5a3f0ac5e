"""Whether a refused run was refused because of the host: an assistant is not blamed for that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_run_rung_at")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="refused_by_host",
            field=models.BooleanField(default=False),
        ),
    ]
