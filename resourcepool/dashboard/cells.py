"""The squares of a card: one for each resource, or, of a large pool, one for each hundredth of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.admin.utils import quote
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.events import localized
from resourcepool.resources.state import State
from resourcepool.status.grid import Cell
from resourcepool.status.snapshots import duration

BANDS = 100
KEY_PLACEHOLDER = "0pk0"  # stands for the key in the address of a page


def resource_squares(cells: Sequence[Cell], address: str, card: str) -> SafeString:
    """Return a square for each resource, which leads to its page.

    Args:
        address: of the page of the resource with the key PLACE; "" when there is none.
        card: what the ids of the squares begin with, so that the focus is found again after a renewal.
    """
    words = CellDescriber()
    return render_squares(((cell.state.value, words.of(cell), cell.pk) for cell in cells), address, card)


def render_squares(cells: Iterable[tuple[str, str, Any]], address: str, group: str) -> SafeString:
    """Return a square for each (class, what it says, key); see ``resource_squares``."""
    texts = [(css, group, index, text, key) for index, (css, text, key) in enumerate(cells)]
    if not address:
        plain = (
            '<span class="rp-cell rp-{}" id="{}-{}" title="{}" tabindex="0" role="img" aria-label="{}"></span>'
        )
        return format_html_join("", plain, ((*text, text[-1]) for *text, _key in texts))
    before, _place, after = address.partition(KEY_PLACEHOLDER)
    linked = '<a class="rp-cell rp-{}" id="{}-{}" title="{}" href="{}"></a>'
    return format_html_join("", linked, ((*text, f"{before}{quote(key)}{after}") for *text, key in texts))


class CellDescriber:
    """Says what resources are doing; looks each word up once, because there are a thousand."""

    def __init__(self) -> None:
        self._states = {state: str(state.label) for state in State}
        self._held, self._left = _("for %s"), _("%s left")

    def of(self, cell: Cell) -> str:
        """Return a line like "17: a.example:3128, leased (web1/90/main/3), for 12 min, 40 s left"."""
        name = f"{cell.name}, " if cell.name else ""
        line = f"{cell.pk}: {name}{self._states[cell.state]}"
        if cell.note:
            line += f" ({localized(cell.note)})"
        if cell.held is not None:
            line += ", " + self._held % duration(cell.held)
        if cell.ends is not None:
            line += ", " + self._left % duration(cell.ends)
        return line


def bands(counts: Mapping[State, int]) -> SafeString:
    """Return a hundred squares, shared out by how many resources are in each state."""
    shares = proportional_shares(counts, BANDS)
    render_squares = (state for state, share in shares.items() for _mark in range(share))
    return format_html(
        '<span class="rp-bands" aria-hidden="true">{}</span>',
        format_html_join("", '<span class="rp-cell rp-{}"></span>', ((state,) for state in render_squares)),
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
