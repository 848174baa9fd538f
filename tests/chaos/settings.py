"""The project's settings with short terms, and the workers' tables."""

from project.settings import *  # noqa: F403
from project.settings import INSTALLED_APPS as PROJECT_APPS, RESOURCEPOOL as PROJECT_TERMS
from tests.chaos.terms import TICKET_TTL, TTL
from tests.settings import WITHOUT_MIGRATIONS

INSTALLED_APPS = [*PROJECT_APPS, "tests.chaos"]
MIGRATION_MODULES = dict.fromkeys(("chaos", *WITHOUT_MIGRATIONS))

QUARANTINE = {"base": 0.1, "cap": 0.2}
RESOURCEPOOL = {**PROJECT_TERMS, "TTL": TTL, "TICKET_TTL": TICKET_TTL, "QUARANTINE": QUARANTINE}

# Thousands of lost leases and lost connections are the purpose; what matters is in the evidence.
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"handlers": [], "level": "CRITICAL"}}
LOGGING["loggers"] = {"resourcepool": {"level": "CRITICAL"}, "django": {"level": "CRITICAL"}}  # type: ignore[assignment]
