"""The Django app."""

from django.apps import AppConfig

from resourcepool.translation import gettext_lazy as _


class ResourcePoolConfig(AppConfig):
    """Registers the models and the system checks."""

    name = "resourcepool"
    label = "resourcepool"
    verbose_name = _("Resource pool")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from resourcepool import checks, hints  # noqa: F401  (the checks register themselves)
        from resourcepool.history import recorder
        from resourcepool.locks.base import forget_known_names

        recorder.listen()
        post_migrate.connect(forget_known_names, sender=self)
        hints.load()
