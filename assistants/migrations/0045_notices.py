"""Of what people want an e-mail."""

import django.db.models.deletion
import runs.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('assistants', '0044_lending'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('of_items', models.BooleanField(default=False)),
                ('of_troubles', models.BooleanField(default=False)),
                ('looked_at', models.DateTimeField(default=runs.clock.now)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='notice', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
    ]
