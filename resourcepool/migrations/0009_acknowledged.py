from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resourcepool", "0008_tasktype_rests_until"),
    ]

    operations = [
        migrations.AlterField(
            model_name="event",
            name="what",
            field=models.CharField(
                choices=[
                    ("acquired", "acquired"),
                    ("released", "released"),
                    ("handed_over", "handed over"),
                    ("lost", "lost"),
                    ("expired", "expired"),
                    ("freed", "freed"),
                    ("fixed", "fixed"),
                    ("quarantined", "quarantined"),
                    ("drained", "drained"),
                    ("reserved", "reserved"),
                    ("returned", "returned to service"),
                    ("checked", "checked"),
                    ("leaked", "leaked"),
                    ("acknowledged", "leak acknowledged"),
                ],
                max_length=12,
                verbose_name="what",
            ),
        ),
    ]
