"""Each audit event carries the hash of the one before it; OS accounts are mapped to site users."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.clock
from runs.audit_head import chained


def chain(apps, schema_editor):
    """Number and hash what was written before, as it is now."""
    events = apps.get_model("runs", "AuditEvent").objects
    previous = ""
    for number, event in enumerate(list(events.order_by("at", "pk")), 1):
        facts = {
            "at": event.at.isoformat(timespec="microseconds"),
            "actor": event.actor_id,
            "account": event.account,
            "action": event.action,
            "subject": event.subject,
            "detail": event.detail,
        }
        sha256 = chained(number, previous, facts)
        events.filter(pk=event.pk).update(number=number, previous=previous, sha256=sha256)
        previous = sha256


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("runs", "0004_run_end_is_lower_bound"),
    ]

    operations = [
        migrations.CreateModel(
            name="TerminalAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("account", models.CharField(max_length=150, unique=True)),
                ("created_at", models.DateTimeField(default=runs.clock.now)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="terminal_account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["account"]},
        ),
        migrations.AddField(
            model_name="auditevent",
            name="number",
            field=models.PositiveBigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="auditevent",
            name="previous",
            field=models.CharField(blank=True, default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="auditevent",
            name="sha256",
            field=models.CharField(default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.RunPython(chain, migrations.RunPython.noop, elidable=False),
        migrations.AlterField(
            model_name="auditevent",
            name="number",
            field=models.PositiveBigIntegerField(editable=False, unique=True),
        ),
    ]
