"""System checks, listed in docs/reference/checks.md."""

from resourcepool.checks import database, models, settings, tenants

__all__ = ["database", "models", "settings", "tenants"]
