from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("resourcepool", "0014_streams"),
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
                    ("paused", "paused"),
                    ("resumed", "resumed"),
                    ("blocked", "blocked"),
                    ("skipped", "skipped"),
                    ("dead", "dead-letter"),
                    ("retried", "retried"),
                    ("discarded", "discarded"),
                ],
                max_length=12,
                verbose_name="what",
            ),
        ),
    ]
