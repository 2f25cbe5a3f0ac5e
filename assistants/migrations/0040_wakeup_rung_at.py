from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assistants", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="wakeup",
            name="rung_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
