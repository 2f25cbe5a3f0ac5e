"""The right to read request bodies, and choices made for the whole installation."""

import runs.clock
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0007_run_refused_by_host'),
    ]

    operations = [
        migrations.CreateModel(
            name='SiteSetting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True)),
                ('value', models.JSONField()),
                ('changed_at', models.DateTimeField(default=runs.clock.now)),
                ('changed_by', models.CharField(blank=True, max_length=150)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.AlterModelOptions(
            name='run',
            options={'ordering': ['-created_at', '-pk'], 'permissions': [('start_run', 'Can start a run'), ('stop_run', 'Can stop a run'), ('view_request_bodies', 'Can read what was sent to a provider')]},
        ),
    ]
