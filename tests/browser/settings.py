"""The tests' settings for the screenshots: with a history, as a project has it."""

from project.settings import RESOURCEPOOL as PROJECT_TERMS
from tests.settings import *  # noqa: F403

RESOURCEPOOL = PROJECT_TERMS
