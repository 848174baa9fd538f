"""The project's settings, and an app with models for tests."""

from project.settings import *  # noqa: F403
from project.settings import INSTALLED_APPS as PROJECT_APPS, RESOURCEPOOL as PROJECT_TERMS

INSTALLED_APPS = [*PROJECT_APPS, "tests.app"]

# The tables of these are made from the models as they are; its twenty migrations are half of what a new database costs.
WITHOUT_MIGRATIONS = ("django_celery_beat",)
MIGRATION_MODULES = dict.fromkeys(("testapp", *WITHOUT_MIGRATIONS))

# Tests of the history switch it on; the others count statements, and what they write need not be written down.
RESOURCEPOOL = {**PROJECT_TERMS, "HISTORY": False}

# Nobody guesses the passwords of tests; the usual hash takes a third of a second for each user that is made.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
