"""The project's settings, and an app with models that only the tests need."""

from project.settings import *  # noqa: F403
from project.settings import INSTALLED_APPS as PROJECT_APPS

INSTALLED_APPS = [*PROJECT_APPS, "tests.app"]

# Its tables are made from the models as they are.
MIGRATION_MODULES = {"testapp": None}
