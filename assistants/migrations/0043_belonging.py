"""Whose an assistant is, and what its owner lets others do with it."""

import django.db.models.deletion
import runs.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('assistants', '0042_reminders'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='assistant',
            options={'ordering': ['name'], 'permissions': [('tell_assistant', 'Can tell an assistant something'), ('wake_assistant', 'Can wake an assistant now'), ('change_assistant_security', 'Can change what an assistant may reach'), ('view_every_assistant', 'Can see the assistants of everybody')]},
        ),
        migrations.AddField(
            model_name='assistant',
            name='owner',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assistants', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('may_tell', models.BooleanField(default=False)),
                ('may_wake', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=runs.clock.now)),
                ('assistant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='assistants.assistant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assistant_grants', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(fields=('assistant', 'user'), name='grant_once')],
            },
        ),
    ]
