from django.db import migrations

import resourcepool.resources.secret


class Migration(migrations.Migration):
    """The column stays as it is."""

    dependencies = [
        ("resourcepool", "0009_acknowledged"),
    ]

    operations = [
        migrations.AlterField(
            model_name="proxy",
            name="password",
            field=resourcepool.resources.secret.EncryptedTextField(
                blank=True,
                bound_to=("scheme", "host", "port", "username"),
                default="",
                verbose_name="password",
            ),
        ),
    ]
