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
        from resourcepool.checks import models, settings  # noqa: F401  (the checks register themselves)
        from resourcepool.hints.choice import load
        from resourcepool.history import recorder

        recorder.listen()
        load()
