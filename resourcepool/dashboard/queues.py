"""What the dashboard shows of queue groups: their servers, each with its queues, and what moved last."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.dashboard.cells import KEY_PLACEHOLDER, render_squares
from resourcepool.dashboard.links import Links
from resourcepool.exceptions import ResourcePoolError
from resourcepool.labels import format_labels
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.status.queues.alarms import is_stalled
from resourcepool.status.queues.moves import latest_moves
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus, queue_groups
from resourcepool.status.queues.queues import QueueCell, cells
from resourcepool.status.snapshots import duration

MAX_CARDS = 20
MAX_SERVER_ROWS = 100  # rows of one card
MAX_SQUARES = 2_000  # on the page; queues beyond that are drawn as bars
MAX_MOVES = 5
LATE = 2  # heartbeats after which one is late
HAD, ASKED, RETIRING, UNOWNED = "leased", "draining", "retired", "quarantined"


@dataclass(frozen=True, slots=True)
class Row:
    """One server, or what nobody has; ``server`` is None then.

    Attributes:
        id, address: of its link, and of its page; "" when there is none.
        state: "up", "late", "draining" or "dead" and ``word`` the same for people.
        queues: how many it has; ``asked_for``: of these, how many are to go elsewhere.
        squares: one for each; "" when a bar stands for them.
        had, asked: of the bar, in percent of its width, as text.
    """

    server: ServerStatus | None
    id: str
    address: str
    state: str
    word: str
    labels: str
    queues: int
    asked_for: int
    squares: SafeString
    had: str
    asked: str


@dataclass(frozen=True, slots=True)
class Panel:
    """All queue groups; ``error``: why nothing is known about them; ``more``: how many are not shown."""

    queue_groups: Sequence[QueueGroupStatus] = ()
    cards: Sequence[dict[str, Any]] = ()
    error: str = ""

    @property
    def more(self) -> int:
        """How many queue groups are not shown."""
        return len(self.queue_groups) - len(self.cards)


def panel(links: Links) -> Panel:
    """Return how the queue groups stand, or why they cannot be read: seven queries, one if there is none."""
    try:
        found = queue_groups()
        if not found:
            return Panel()
        shown, moved = found[:MAX_CARDS], latest_moves()
        where = cells(small(shown))
    except (ResourcePoolError, DatabaseError) as error:
        is_ours = isinstance(error, ResourcePoolError)
        return Panel(error=str(error) if is_ours else _("the server's log says more"))
    cards = [card(f"rpq{n}", one, where.get(one.pk), moved, links) for n, one in enumerate(shown)]
    return Panel(found, cards)


def small(found: Iterable[QueueGroupStatus]) -> list[int]:
    """Return the keys of those whose queues all fit on the page, the smallest first."""
    keys, left = [], MAX_SQUARES
    for one in sorted(found, key=lambda one: one.queues):
        left -= one.queues
        if left >= 0:
            keys.append(one.pk)
    return keys


def card(
    name: str, one: QueueGroupStatus, where: Sequence[QueueCell] | None, moved: Mapping[str, Any], links: Links
) -> dict[str, Any]:
    """Return the card of a queue group, whose id is ``name``; ``where``: its queues, or None when bars are drawn."""
    to = {  # addresses; "" when there is none
        "page": links.change_page(QueueGroup, one.pk),
        "servers": links.changelist(Server, queue_group=one.name),
        "queues": links.changelist(Queue, queue_group=one.name),
        "unowned": links.changelist(Queue, queue_group=one.name, status="unowned") if one.unowned else "",
        "asked": links.changelist(Queue, queue_group=one.name, status="asked") if one.asked_for else "",
        "moves": links.changelist(Move, queue_group=one.name),
    }
    return {
        "id": name,
        "one": one,
        "rows": rows(one, where, links, name),
        "more": max(0, len(one.servers) - MAX_SERVER_ROWS),
        "is_single": where is not None,
        "moves": list(moved.get(one.name, ()))[:MAX_MOVES],
        "to": to,
    }


def rows(one: QueueGroupStatus, where: Sequence[QueueCell] | None, links: Links, name: str) -> list[Row]:
    """Return a row for unassigned queues, if there are any, and one for each server, dead servers first."""
    servers = sorted(one.servers, key=lambda server: (server.is_alive, server.pk))[:MAX_SERVER_ROWS]
    known = {server.pk for server in one.servers}
    lost = one.unowned - sum(server.queues for server in one.servers if not server.is_alive)
    most = max([lost, 1, *(server.queues for server in servers)])
    words, queue = Words(one), links.change_page(Queue, KEY_PLACEHOLDER)
    of: dict[int | None, list[QueueCell]] = {}
    for cell in where or ():
        of.setdefault(cell.owner if cell.owner in known else None, []).append(cell)

    def row(server: ServerStatus | None, queues: int, asked_for: int) -> Row:
        key = server.pk if server else None
        state, word = standing(server, one)
        squares = render_squares(map(words.of, of.get(key, ())), queue, f"{name}-{key or 0}")
        labels, address = (
            (format_labels(server.labels), links.change_page(Server, server.pk)) if server else ("", "")
        )
        had, asked = 100 * (queues - asked_for) / most, 100 * asked_for / most
        return Row(
            *(server, f"{name}-server-{key}", address, state, word, labels, queues, asked_for, squares),
            *(f"{had:.2f}", f"{asked:.2f}"),
        )

    nobody = [row(None, lost, 0)] if lost > 0 else []
    return nobody + [row(server, server.queues, server.asked_for) for server in servers]


def standing(server: ServerStatus | None, one: QueueGroupStatus) -> tuple[str, str]:
    """Return how a server is, for the style sheet and for people."""
    if server is None:
        return "dead", ""
    if not server.is_alive:
        return "dead", _("judged dead")
    if is_stalled(one, server.queues, server.last_activity, server.in_hand):
        return "dead", _("hangs")
    word = _("draining") if server.is_draining else _("up")
    if server.heartbeat > LATE * one.heartbeat_every:
        return "late", _("%s, late") % word
    return ("draining" if server.is_draining else "up"), word


class Words:
    """Says where queues are; looks each word up once, because there may be two thousand."""

    def __init__(self, one: QueueGroupStatus) -> None:
        self._names = {server.pk: str(server) for server in one.servers}
        self._alive = {server.pk for server in one.servers if server.is_alive}
        self._had, self._nobody, self._dead = _("had by %s"), _("without owner"), _("judged dead")
        self._for, self._asked, self._pinned = _("for %s"), _("asked for by %s"), _("pinned to %s")
        self._removed = _("to be removed")

    def of(self, cell: QueueCell) -> tuple[str, str, int]:
        """Return (class, line like "7: had by A #1, for 12 min, asked for by B #2, for 3 s", key)."""
        said = [self._owner(cell)]
        if cell.had is not None and cell.owner is not None:
            said.append(self._for % duration(cell.had))
        if cell.asked is not None:
            asked = self._asked % self._names.get(cell.asker or 0, "?")
            said += [self._removed if cell.is_retiring else asked, self._for % duration(cell.asked)]
        if cell.pin:
            said.append(self._pinned % cell.pin)
        return self._css(cell), f"{cell.queue_id}: {', '.join(said)}", cell.pk

    def _owner(self, cell: QueueCell) -> str:
        if cell.owner is None or cell.owner not in self._names:
            return self._nobody
        name = self._had % self._names[cell.owner]
        return name if cell.owner in self._alive else f"{name} ({self._dead})"

    def _css(self, cell: QueueCell) -> str:
        if cell.owner not in self._alive:
            return UNOWNED
        if cell.is_retiring:
            return RETIRING
        return HAD if cell.asked is None else ASKED
