"""System checks, listed in docs/reference/checks.md."""

from resourcepool.checks import models, settings

__all__ = ["models", "settings"]
