"""System checks, listed in docs/checks.md."""

from resourcepool.checks import database, models, settings

__all__ = ["database", "models", "settings"]
