"""The dashboard's panel of queue groups: their servers, each with its queues, and the latest moves."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError
from django.utils.safestring import SafeString

from resourcepool.dashboard.containers import CSS, KEY_PLACEHOLDER, Drawn, render_squares
from resourcepool.dashboard.links import Links
from resourcepool.exceptions import ResourcePoolError
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.status.badge import Badge
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus, queue_groups
from resourcepool.status.queues.queues import QueueStatus, all_queues, latest_moves
from resourcepool.status.queues.system import DRAINING, badge_of_server, queue_group_badge
from resourcepool.status.times import duration
from resourcepool.text import format_labels
from resourcepool.translation import gettext as _

MAX_CARDS = 20
MAX_SERVER_ROWS = 100  # rows of one card
MAX_SQUARES = 2_000  # of the page; more queues are drawn as bars
MAX_MOVES = 5
OWNED, REQUESTED, RETIRING, UNOWNED = "leased", "draining", "retired", "quarantined"  # CSS classes


@dataclass(frozen=True, slots=True)
class Row:
    """One server, or all unowned queues (``server`` is None).

    Attributes:
        id: of its link; ``url``: of its page, "": none.
        state: CSS class: "up", "late", "draining" or "dead"; ``badge``: the state for people.
        queues: how many it has; ``asked_for``: of these, how many are requested by other servers.
        squares: one for each queue; "": there is a bar instead.
        owned, requested: widths in the bar, in percent, as text.
    """

    server: ServerStatus | None
    id: str
    url: str
    state: str
    badge: Badge | str
    labels: str
    queues: int
    asked_for: int
    squares: SafeString
    owned: str
    requested: str


@dataclass(frozen=True, slots=True)
class Panel:
    """All queue groups; ``error``: why they cannot be read; "": no error."""

    queue_groups: Sequence[QueueGroupStatus] = ()
    cards: Sequence[dict[str, Any]] = ()
    error: str = ""

    @property
    def more(self) -> int:
        """How many queue groups are not shown."""
        return len(self.queue_groups) - len(self.cards)


def panel(links: Links) -> Panel:
    """Return the status of the queue groups, or why it cannot be read: seven queries, or one without queue groups."""
    try:
        statuses = queue_groups()
        if not statuses:
            return Panel()
        shown, moves = statuses[:MAX_CARDS], latest_moves()
        cells = all_queues(smallest_that_fit(shown))
    except (ResourcePoolError, DatabaseError) as error:
        is_public = isinstance(error, ResourcePoolError)
        return Panel(error=str(error) if is_public else _("see the server's log"))
    cards = [card(f"rpq{n}", status, cells.get(status.pk), moves, links) for n, status in enumerate(shown)]
    return Panel(statuses, cards)


def smallest_that_fit(statuses: Iterable[QueueGroupStatus]) -> list[QueueGroupStatus]:
    """Return the queue groups whose queues all fit on the page as squares, the smallest first."""
    fitting, left = [], MAX_SQUARES
    for status in sorted(statuses, key=lambda status: status.queues):
        left -= status.queues
        if left >= 0:
            fitting.append(status)
    return fitting


def card(
    id_: str,
    status: QueueGroupStatus,
    cells: Sequence[QueueStatus] | None,
    moves: Mapping[str, Any],
    links: Links,
) -> dict[str, Any]:
    """Return the context of a queue group's card; ``cells``: its queues, or None for bars."""
    name = status.name
    urls = {  # "": none
        "page": links.change_page(QueueGroup, status.pk),
        "servers": links.changelist(Server, queue_group=name),
        "queues": links.changelist(Queue, queue_group=name),
        "unowned": links.changelist(Queue, queue_group=name, status="unowned") if status.unowned else "",
        "requested": links.changelist(Queue, queue_group=name, status="asked") if status.asked_for else "",
        "moves": links.changelist(Move, queue_group=name),
    }
    return {
        "id": id_,
        "status": status,
        "badge": queue_group_badge(status),
        "rows": rows(status, cells, links, id_),
        "more": max(0, len(status.servers) - MAX_SERVER_ROWS),
        "has_squares": cells is not None,
        "moves": list(moves.get(name, ()))[:MAX_MOVES],
        "urls": urls,
    }


def rows(
    status: QueueGroupStatus, cells: Sequence[QueueStatus] | None, links: Links, card_id: str
) -> list[Row]:
    """Return a row for unassigned queues, if there are any, and one for each server, dead servers first."""
    servers = sorted(status.servers, key=lambda server: (server.is_alive, server.pk))[:MAX_SERVER_ROWS]
    known = {server.pk for server in status.servers}
    unassigned = status.unowned - sum(server.queues for server in status.servers if not server.is_alive)
    most = max([unassigned, 1, *(server.queues for server in servers)])
    queue_url = links.change_page(Queue, KEY_PLACEHOLDER)
    by_owner: dict[int | None, list[QueueStatus]] = {}
    for cell in cells or ():
        by_owner.setdefault(cell.owner_pk if cell.owner_pk in known else None, []).append(cell)

    def row(server: ServerStatus | None, queues: int, asked_for: int) -> Row:
        key = server.pk if server else None
        state, state_badge = state_of(server, status)
        squares = render_squares(map(describe, by_owner.get(key, ())), queue_url, f"{card_id}-{key or 0}")
        labels, url = (
            (format_labels(server.labels), links.change_page(Server, server.pk)) if server else ("", "")
        )
        owned, requested = 100 * (queues - asked_for) / most, 100 * asked_for / most
        return Row(
            *(server, f"{card_id}-server-{key}", url, state, state_badge, labels, queues, asked_for, squares),
            *(f"{owned:.2f}", f"{requested:.2f}"),
        )

    first = [row(None, unassigned, 0)] if unassigned > 0 else []
    return first + [row(server, server.queues, server.asked_for) for server in servers]


def state_of(server: ServerStatus | None, status: QueueGroupStatus) -> tuple[str, Badge | str]:
    """Return the state of a server, and its CSS class first."""
    if server is None:
        return "dead", ""
    badge = badge_of_server(status, server)
    css = "draining" if badge is DRAINING else CSS.get(badge.level, "up")
    return css, badge


def describe(queue: QueueStatus) -> tuple[str, str, int]:
    """Return (CSS class, text like "7: owned by A #1, for 12 min, requested by B #2, for 3 s", key)."""
    parts = [_("owned by %s") % queue.owner if queue.owner else _("unowned")]
    if queue.owner and not queue.is_owned:
        parts = [_("%s (presumed dead)") % parts[0]]
    if queue.since is not None and queue.owner:
        parts.append(_("for %s") % duration(queue.since))
    if queue.asked_for is not None:
        requested = _("requested by %s") % (queue.requester or "?")
        parts.append(_("to be removed") if queue.is_retiring else requested)
        parts.append(_("for %s") % duration(queue.asked_for))
    if queue.pin:
        parts.append(_("pinned to %s") % queue.pin)
    css = OWNED if queue.asked_for is None else RETIRING if queue.is_retiring else REQUESTED
    return css if queue.is_owned else UNOWNED, f"{queue.queue_id}: {', '.join(parts)}", queue.pk


def draw_queues(links: Links, visible: Set[Any]) -> Drawn | None:
    """Return the panel, for users who may view queue groups."""
    if QueueGroup not in visible:
        return None
    shown = panel(links)
    sections = [(card["id"], card["status"].name) for card in shown.cards]
    return Drawn("resourcepool/dashboard/queues.html", shown, {"queues": shown.queue_groups}, sections)
