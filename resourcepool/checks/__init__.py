"""System checks, listed in docs/reference/checks.md."""
