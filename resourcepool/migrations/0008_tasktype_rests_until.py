from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resourcepool", "0007_ticket_address"),
    ]

    operations = [
        migrations.AddField(
            model_name="tasktype",
            name="rests_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
