"""System checks: what is wrong, found before anything is leased. docs/checks.md lists them."""

from resourcepool.checks import database, models, settings

__all__ = ["database", "models", "settings"]
