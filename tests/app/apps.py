"""The Django app."""

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    """The models of the tests."""

    name = "tests.app"
    label = "testapp"
    default_auto_field = "django.db.models.BigAutoField"
