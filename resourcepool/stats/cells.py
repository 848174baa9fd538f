"""Cells of a table for spreadsheets: nothing that a spreadsheet would execute."""

from typing import Any

FORMULAS = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 (some spreadsheets take the wide ones, too)


def harmless(value: Any) -> Any:
    """Return what a spreadsheet would take for a formula with a ' before it; numbers and nothing as they are."""
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULAS) else text
