from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resourcepool", "0010_password_bound"),
    ]

    operations = [
        migrations.AddField(
            model_name="server",
            name="stirred_at",
            field=models.DateTimeField(null=True, verbose_name="last asked for work at"),
        ),
        migrations.AddField(
            model_name="server",
            name="in_hand",
            field=models.PositiveIntegerField(default=0, verbose_name="in hand"),
        ),
    ]
