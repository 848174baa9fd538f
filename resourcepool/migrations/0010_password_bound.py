from django.db import migrations

import resourcepool.encryption.field


class Migration(migrations.Migration):
    """The column stays as it is."""

    dependencies = [
        ("resourcepool", "0009_acknowledged"),
    ]

    operations = [
        migrations.AlterField(
            model_name="proxy",
            name="password",
            field=resourcepool.encryption.field.EncryptedTextField(
                blank=True,
                bound_to=("scheme", "host", "port", "username"),
                default="",
                verbose_name="password",
            ),
        ),
    ]
