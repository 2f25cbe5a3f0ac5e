"""A destination may be told of items that wait long for a decision; each item is told of once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("assistants", "0041_rights")]

    operations = [
        migrations.AddField(
            model_name="destination",
            name="remind_after_s",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="outboxitem",
            name="reminded_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
