"""The dashboard's panels of systems with named rows: a line for each row."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from django.utils.text import capfirst

from resourcepool.dashboard.links import Links
from resourcepool.status.badge import Badge, Level
from resourcepool.status.system import Figure, NamedSystem, Panel

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
    """The first rows by name; ``all_url``: the list of all; "": none."""

    declared: Panel
    html_id: str
    columns: Sequence[tuple[str, Figure]]
    rows: Sequence[Row]
    has_more: bool
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
    if declared.details and declared.details not in visible:
        statuses = [status.redacted() for status in statuses]
    rows = [_row(links, system, declared, number, status) for number, status in enumerate(statuses)]
    html_id = declared.html_id or f"rp-{system.name}"
    all_url = links.changelist(system.reader.model) if after else ""
    columns = [(str(capfirst(heading)), figure) for heading, figure in system.figures_of_pages]
    panel = ContainerPanel(declared, html_id, columns, rows, bool(after), all_url)
    return Drawn(TEMPLATE if rows else "", panel, {system.name: statuses}, [(html_id, declared.title)])


def _row(links: Links, system: NamedSystem, declared: Panel, number: int, status: Any) -> Row:
    urls = {
        rows.name: links.changelist(rows.model, **rows.filters_of(system.word, status.name))
        for figure in system.figures
        if (rows := figure.rows)
    }
    page = links.change_page(system.reader.model, status.name)
    return Row(f"{declared.id_prefix}{number}", status, page, CSS.get(status.badge.level, "up"), urls)
