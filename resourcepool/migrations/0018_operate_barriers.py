"""Barriers can be removed by those who have the permission for it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("resourcepool", "0017_locks")]

    operations = [
        migrations.AlterModelOptions(
            name="notification",
            options={
                "default_permissions": ("view", "operate"),
                "verbose_name": "condition or barrier",
                "verbose_name_plural": "conditions and barriers",
            },
        ),
    ]
