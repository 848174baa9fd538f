"""The status of elections: leader, term, its duration, and the number of standbys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count

from resourcepool.elections.models import Election as ElectionRow, selector
from resourcepool.status.badge import Badge, Level
from resourcepool.status.snapshots import Since, Until
from resourcepool.status.status_reader import ReasonsMixin, StatusReader
from resourcepool.status.system import LOCKS, NamedSystem, Panel, count, gauge, seconds, text
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop
from resourcepool.waiting.models import Ticket

LED = Badge(Level.OK, "led", _("has a leader"))
ELECTING = Badge(Level.WARN, "electing", _("no leader yet"))
NO_LEADER = Badge(Level.BAD, "no_leader", _("no leader"))


@dataclass(frozen=True, slots=True)
class ElectionStatus(ReasonsMixin):
    """The status of one election; times in seconds.

    Attributes:
        leader: the holder; "": none.
        term: the number of the last term.
        since: how long the leader has led; None: no leader, or not stored yet.
        expires_in: until the term expires unless it is renewed; None: no leader.
        standbys: the number of standbys.
    """

    name: str
    leader: str
    term: int
    since: float | None
    expires_in: float | None
    standbys: int

    @property
    def badge(self) -> Badge:
        return LED if self.leader else ELECTING if self.standbys else NO_LEADER

    def reasons(self) -> Iterator[str]:
        if not self.leader and not self.standbys:
            yield gettext("no leader and no standbys")


def _annotated(rows: Any) -> Any:
    return rows.annotate(left=Until("busy_before"), led=Since("elected_at"))


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[ElectionStatus]:
    tickets = Ticket.objects.using(connection.alias).for_rows_of(ElectionRow).waiting().order_by()
    selectors = tickets.filter(selector__in=[selector(row.pk) for row in rows]).values_list("selector")
    standbys = dict(selectors.annotate(Count("pk")))
    return [_status(row, standbys.get(selector(row.pk), 0)) for row in rows]


def _status(row: Any, standbys: int) -> ElectionStatus:
    is_led = bool(row.holder) and row.left > 0
    return ElectionStatus(
        name=row.name,
        leader=row.holder if is_led else "",
        term=row.fence,
        since=row.led if is_led and row.elected_term == row.fence else None,
        expires_in=row.left if is_led else None,
        standbys=standbys,
    )


ELECTIONS = StatusReader(ElectionRow, _annotated, _read, word="election")


SYSTEM = NamedSystem(
    reader=ELECTIONS,
    figures=(
        text(_("election"), "name"),
        gauge("led", "Whether there is a leader.", lambda one: bool(one.leader)),
        text(_("leader"), "leader"),
        count(_("term"), "term", gauge=("term", "The number of the last term.")),
        seconds(_("leading for"), "since"),
        seconds(_("expires in"), "expires_in"),
        count(_("standbys"), "standbys", gauge=("standbys", "Number of standbys.")),
    ),
    section=LOCKS,
    none_yet=gettext_noop("No elections yet: the first campaign creates its election."),
    panel=Panel(_("Elections"), _("one leader each"), order=55),
)
