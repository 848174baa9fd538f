"""The panels of systems with named rows, and the squares of cards: one per resource."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.utils import quote
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from resourcepool.dashboard.links import Links
from resourcepool.events import localized
from resourcepool.status.badge import Badge, Level
from resourcepool.status.resources.activity import Cell
from resourcepool.status.system import Figure, NamedSystem, Panel
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _

TEMPLATE = "resourcepool/dashboard/system.html"
CSS = {Level.WARN: "late", Level.BAD: "dead"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A panel of the dashboard with its data.

    Attributes:
        template: "": there is nothing to show.
        panel: the data, for the template.
        read: {name of a system: its statuses}, for the alarms.
        sections: (HTML id, title) of each of its sections.
    """

    template: str
    panel: Any
    read: Mapping[str, Any] = field(default_factory=dict)
    sections: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a panel.

    Attributes:
        id: HTML id of its link.
        status: its status, as read from the database.
        url: its page; "": none.
        state: CSS class: "up", "late" or "dead", by the gravity of its state; ``badge``: its state, of a lock.
        links: the URLs of its lists by name; "": none.
    """

    id: str
    status: Any
    url: str
    state: str = "up"
    links: Mapping[str, str] = field(default_factory=dict)
    badge: Badge | None = None


@dataclass(frozen=True, slots=True)
class ContainerPanel:
    """The first rows by name; ``all_url``: the list of all; "": all are shown."""

    html_id: str
    system: NamedSystem
    columns: Sequence[tuple[str, Figure]]
    rows: Sequence[Row]
    all_url: str


def draw(system: NamedSystem, declared: Panel, links: Links, visible: Set[Any]) -> Drawn | None:
    """Return a line for each of the first rows, with at most five queries; one query if there is none.

    Args:
        declared: the panel of the system.
        links: makes the URLs.
        visible: the models that the user may view.
    """
    if not visible >= {*system.viewed}:
        return None
    statuses, after = system.reader.page()
    if not visible >= {*system.details}:
        statuses = [status.redacted() for status in statuses]
    rows = [_row(links, system, number, status) for number, status in enumerate(statuses)]
    html_id = f"rp-{system.name}"
    all_url = links.changelist(system.reader.model) if after else ""
    columns = [(str(capfirst(heading)), figure) for heading, figure in system.figures_of_pages]
    panel = ContainerPanel(html_id, system, columns, rows, all_url)
    return Drawn(TEMPLATE if rows else "", panel, {system.name: statuses}, [(html_id, declared.title)])


def _row(links: Links, system: NamedSystem, number: int, status: Any) -> Row:
    urls = {
        rows.name: links.changelist(rows.model, **rows.filters_of(system.word, status.name))
        for figure in system.figures
        if (rows := figure.rows)
    }
    page = links.change_page(system.reader.model, status.name)
    return Row(f"rp-{system.word}-{number}", status, page, CSS.get(status.badge.level, "up"), urls)


OVERDUE = "overdue"
KEY_PLACEHOLDER = "0pk0"  # placeholder for the key in a URL


def resource_squares(cells: Sequence[Cell], address: str, card: str) -> SafeString:
    """Return a square for each resource, linked to its page.

    Args:
        address: URL of a page, with ``KEY_PLACEHOLDER`` as the key; "": no links.
        card: prefix of the ids, by which the focus is restored after a refresh.
    """
    squares = ((OVERDUE if cell.is_overdue else cell.state.value, describe(cell), cell.pk) for cell in cells)
    return render_squares(squares, address, card)


def render_squares(cells: Iterable[tuple[str, str, Any]], address: str, group: str) -> SafeString:
    """Return a square for each (CSS class, text, key); see ``resource_squares``."""
    texts = [(css, group, index, text, key) for index, (css, text, key) in enumerate(cells)]
    if not address:
        plain = '<span class="rp-cell rp-{}" id="{}-{}" tabindex="0" role="img" aria-label="{}"></span>'
        return format_html_join("", plain, (text for *text, _key in texts))
    before, _key, after = address.partition(KEY_PLACEHOLDER)
    linked = '<a class="rp-cell rp-{}" id="{}-{}" aria-label="{}" href="{}"></a>'
    return format_html_join("", linked, ((*text, f"{before}{quote(key)}{after}") for *text, key in texts))


def describe(cell: Cell) -> str:
    """Return a line like "17: a.example:3128, leased (web1/90/main/3), for 12 min, 40 s left"."""
    name = f"{cell.name}, " if cell.name else ""
    line = f"{cell.pk}: {name}{cell.state.label}"
    if cell.note:
        line += f" ({localized(cell.note)})"
    if cell.held is not None:
        line += ", " + _("for %s") % duration(cell.held)
    if cell.ends is not None:
        line += ", " + _("%s left") % duration(cell.ends)
    if cell.is_overdue:
        line += ", " + _("overdue: not renewed in time")
    return line
