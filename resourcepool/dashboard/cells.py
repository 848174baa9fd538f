"""The squares of a card: one for each resource, or, of a large pool, one for each hundredth of it."""

from collections.abc import Iterable, Mapping

from django.contrib.admin.utils import quote
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.resources.state import State
from resourcepool.stats.alarms import duration
from resourcepool.stats.grid import Cell

BANDS = 100
PLACE = "0pk0"  # stands for the key in the address of a page


def squares(cells: Iterable[Cell], address: str, card: str) -> SafeString:
    """Return a square for each resource, which leads to its page.

    Args:
        address: of the page of the resource with the key PLACE; "" when there is none.
        card: what the ids of the squares begin with, so that the focus is found again after a renewal.
    """
    if not address:
        plain = (
            '<span class="rp-cell rp-{}" id="{}-{}" tabindex="0" role="img" aria-label="{}" title="{}"></span>'
        )
        texts = ((index, cell, described(cell)) for index, cell in enumerate(cells))
        return format_html_join(
            "", plain, ((cell.state, card, index, text, text) for index, cell, text in texts)
        )
    before, _place, after = address.partition(PLACE)
    linked = '<a class="rp-cell rp-{}" id="{}-{}" href="{}{}{}" title="{}"></a>'
    return format_html_join(
        "",
        linked,
        (
            (cell.state, card, index, before, quote(cell.pk), after, described(cell))
            for index, cell in enumerate(cells)
        ),
    )


def described(cell: Cell) -> str:
    """Say what a resource is doing: "17: leased by web1/90/main/3, for 12 min, runs out in 40 s"."""
    parts = [f"{cell.pk}: {cell.state.label}"]
    if cell.note:
        parts[0] += f" ({cell.note})"
    if cell.held is not None:
        parts.append(_("for %s") % duration(cell.held))
    if cell.ends is not None:
        parts.append(_("%s left") % duration(cell.ends))
    return ", ".join(parts)


def bands(counts: Mapping[State, int]) -> SafeString:
    """Return a hundred squares, shared out by how many resources are in each state."""
    shares = shared_out(counts, BANDS)
    marks = (state for state, share in shares.items() for _mark in range(share))
    return format_html(
        '<span class="rp-bands" aria-hidden="true">{}</span>',
        format_html_join("", '<span class="rp-cell rp-{}"></span>', ((state,) for state in marks)),
    )


def shared_out(counts: Mapping[State, int], places: int) -> dict[State, int]:
    """Share ``places`` out in proportion: as many in all as there are, and one at least for who has any."""
    total = sum(counts.values())
    if not total:
        return {}
    shares = {state: max(1, count * places // total) for state, count in counts.items() if count}
    largest = max(shares, key=lambda state: counts[state])
    shares[largest] += places - sum(shares.values())
    return shares
