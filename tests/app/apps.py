"""The Django app."""

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    """Holds the tests' own models."""

    name = "tests.app"
    label = "testapp"
    default_auto_field = "django.db.models.BigAutoField"
