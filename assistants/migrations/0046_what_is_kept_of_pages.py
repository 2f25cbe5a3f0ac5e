"""Where approved items went, what briefs said, filters, what was said on the web."""

import django.db.models.deletion
import runs.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('assistants', '0045_notices'),
        ('runs', '0009_spend_indexes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='assistant',
            name='set_on_web',
            field=models.JSONField(default=dict),
        ),
        migrations.CreateModel(
            name='BriefVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('sha256', models.CharField(max_length=64)),
                ('read_at', models.DateTimeField(default=runs.clock.now)),
                ('account', models.CharField(blank=True, max_length=150)),
                ('assistant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='briefs', to='assistants.assistant')),
                ('wakeup', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='assistants.wakeup')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='ApprovedPlaces',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('names', models.JSONField(default=list)),
                ('at', models.DateTimeField(default=runs.clock.now)),
                ('decision', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.decision')),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(fields=('decision', 'digest'), name='approved_places_once')],
            },
        ),
        migrations.CreateModel(
            name='OutboxFilter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('words', models.JSONField(default=dict)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='outbox_filters', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('user', 'name'), name='outbox_filter_name')],
            },
        ),
    ]
