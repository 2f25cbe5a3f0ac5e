"""Rights that the web asks for, beside those every model has."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("assistants", "0040_wakeup_rung_at"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="assistant",
            options={
                "ordering": ["name"],
                "permissions": [
                    ("tell_assistant", "Can tell an assistant something"),
                    ("wake_assistant", "Can wake an assistant now"),
                    ("change_assistant_security", "Can change what an assistant may reach"),
                ],
            },
        ),
        migrations.AlterModelOptions(
            name="memorysnapshot",
            options={
                "ordering": ["-taken_at", "-pk"],
                "permissions": [
                    ("review_memory", "Can accept, reject and restore what assistants remember")
                ],
            },
        ),
        migrations.AlterModelOptions(
            name="outboxitem",
            options={
                "ordering": ["-created_at", "-pk"],
                "permissions": [
                    ("decide_outboxitem", "Can approve and reject what assistants want to say")
                ],
            },
        ),
    ]
