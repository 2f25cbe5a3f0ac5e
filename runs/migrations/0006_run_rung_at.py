"""When a worker was told of a run, so that a bell which was lost is rung again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_audit_chain")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="rung_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("state", "queued")), fields=["rung_at"], name="run_queued"
            ),
        ),
    ]
