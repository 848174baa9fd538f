from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resourcepool", "0006_ticket_granted"),
    ]

    operations = [
        # Not altered: a ticket lives for seconds, and its old address is no number.
        migrations.RemoveField(model_name="ticket", name="address"),
        migrations.AddField(
            model_name="ticket",
            name="address",
            field=models.PositiveIntegerField(
                default=0,
                editable=False,
                help_text="Of the process that hints are sent to.",
                verbose_name="address",
            ),
        ),
    ]
