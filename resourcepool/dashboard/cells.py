"""The squares of a card: one per resource or, for a large pool, a hundred in proportion to its states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.admin.utils import quote
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from resourcepool.events import localized
from resourcepool.resources.state import State
from resourcepool.status.resources.grid import Cell
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _

PROPORTIONAL_SQUARES = 100
OVERDUE = "overdue"
KEY_PLACEHOLDER = "0pk0"  # placeholder for the key in a URL


def resource_squares(cells: Sequence[Cell], address: str, card: str) -> SafeString:
    """Return a square for each resource, linked to its page.

    Args:
        address: URL of a page, with ``KEY_PLACEHOLDER`` as the key; "": no links.
        card: prefix of the ids, by which the focus is restored after a refresh.
    """
    describer = CellDescriber()
    return render_squares(((css_class(cell), describer.text(cell), cell.pk) for cell in cells), address, card)


def css_class(cell: Cell) -> str:
    """Return the class of a square: its state, or that its holder should have renewed its lease."""
    return OVERDUE if cell.is_overdue else cell.state.value


def render_squares(cells: Iterable[tuple[str, str, Any]], address: str, group: str) -> SafeString:
    """Return a square for each (CSS class, text, key); see ``resource_squares``."""
    texts = [(css, group, index, text, key) for index, (css, text, key) in enumerate(cells)]
    if not address:
        plain = '<span class="rp-cell rp-{}" id="{}-{}" tabindex="0" role="img" aria-label="{}"></span>'
        return format_html_join("", plain, (text for *text, _key in texts))
    before, _key, after = address.partition(KEY_PLACEHOLDER)
    linked = '<a class="rp-cell rp-{}" id="{}-{}" aria-label="{}" href="{}"></a>'
    return format_html_join("", linked, ((*text, f"{before}{quote(key)}{after}") for *text, key in texts))


class CellDescriber:
    """Describes resources; looks up each translation once, for up to a thousand cells."""

    def __init__(self) -> None:
        self._states = {state: str(state.label) for state in State}
        self._held, self._left, self._overdue = _("for %s"), _("%s left"), _("overdue: not renewed in time")

    def text(self, cell: Cell) -> str:
        """Return a line like "17: a.example:3128, leased (web1/90/main/3), for 12 min, 40 s left"."""
        name = f"{cell.name}, " if cell.name else ""
        line = f"{cell.pk}: {name}{self._states[cell.state]}"
        if cell.note:
            line += f" ({localized(cell.note)})"
        if cell.held is not None:
            line += ", " + self._held % duration(cell.held)
        if cell.ends is not None:
            line += ", " + self._left % duration(cell.ends)
        if cell.is_overdue:
            line += ", " + self._overdue
        return line


def proportional_squares(counts: Mapping[State, int]) -> SafeString:
    """Return a hundred squares, divided in proportion to the resources in each state."""
    shares = proportional_shares(counts, PROPORTIONAL_SQUARES)
    states = (state for state, share in shares.items() for _square in range(share))
    return format_html(
        '<span class="rp-bands" aria-hidden="true">{}</span>',
        format_html_join("", '<span class="rp-cell rp-{}"></span>', ((state,) for state in states)),
    )


def proportional_shares(counts: Mapping[State, int], places: int) -> dict[State, int]:
    """Divide ``places`` in proportion to ``counts``; each count above 0 gets at least one."""
    total = sum(counts.values())
    if not total:
        return {}
    shares = {state: max(1, count * places // total) for state, count in counts.items() if count}
    largest = max(shares, key=lambda state: counts[state])
    shares[largest] += places - sum(shares.values())
    return shares
