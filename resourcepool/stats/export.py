"""What leaves in a table for a spreadsheet, made harmless."""

from typing import Any

FORMULAS = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 (some spreadsheets take the wide ones, too)


def harmless(value: Any) -> Any:
    """Return text that a spreadsheet would take for a formula with a ' before it; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
