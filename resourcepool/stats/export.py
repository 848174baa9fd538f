"""Resources as cells of a table, for spreadsheets: no secrets, and nothing that a spreadsheet would execute."""

from typing import Any

from resourcepool.resources.selectors import selectable

FORMULAS = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 (some spreadsheets take the wide ones, too)

# How a resource stands: its lease, what operators decided, and what the last check found.
STANDS = (
    *("state", "holder", "fence", "busy_before"),
    *("status", "reason", "until", "verdict", "checked_at", "latency"),
)


def header(model: Any) -> list[str]:
    """Return the names of the columns: those of the model without its secrets, then how it stands."""
    return [*selectable(model), *STANDS]


def harmless(value: Any) -> Any:
    """Return text that a spreadsheet would take for a formula with a ' before it; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
