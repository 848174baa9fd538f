"""The explanation of one resource or one holder, as text."""

import shlex
from collections.abc import Iterator
from typing import Any

from resourcepool.events import localized
from resourcepool.management.layout import more_rows_note, name_value_lines, one_line, or_dash
from resourcepool.management.locks_report import HELD_BY_PROCESS
from resourcepool.management.status_report import LEASE_COLUMNS
from resourcepool.management.tables import Column, table
from resourcepool.status.resources.waiters import TicketStatus, WaiterStatus
from resourcepool.status.resources.why import HolderExplanation, ResourceExplanation
from resourcepool.status.search import Matches
from resourcepool.status.times import ago, duration, timestamp_with_age
from resourcepool.translation import gettext as _, gettext_lazy


def _wants(ticket: TicketStatus) -> str:
    wants_text = ticket.wants_text or _("any")
    return f"{ticket.count} x {wants_text}"


ENDINGS = (
    Column(gettext_lazy("at"), lambda ending: timestamp_with_age(ending.at, ending.age)),
    Column(gettext_lazy("how"), lambda ending: ending.what.label),
    Column(gettext_lazy("held for"), lambda ending: or_dash(ending.seconds, duration)),
    Column(gettext_lazy("holder"), lambda ending: or_dash(ending.holder)),
    Column(gettext_lazy("by"), lambda ending: or_dash(ending.actor)),
    Column(gettext_lazy("reason"), lambda ending: or_dash(localized(ending.reason))),
)
AHEAD = (
    Column(gettext_lazy("holder"), lambda ticket: ticket.holder),
    Column(gettext_lazy("wants"), _wants),
    Column(gettext_lazy("waited"), lambda ticket: duration(ticket.waited)),
    Column(gettext_lazy("priority"), lambda ticket: ticket.priority),
)


def resource_as_text(resource: ResourceExplanation) -> Iterator[Any]:
    yield f"{resource.pool} {one_line(resource.row.pk)}: {one_line(resource.row, 120)}"
    yield name_value_lines((f"{name}:", value) for name, value in _resource(resource))
    yield ""
    if resource.endings:
        yield _("How its last leases ended:")
        yield table(resource.endings, ENDINGS)
    else:
        yield _("No ended leases in the history.")


def holder_as_text(holder: HolderExplanation) -> Iterator[Any]:
    yield one_line(holder.holder, 200)
    if holder.leases:
        yield from [
            "",
            _("Leases:"),
            table(holder.leases, LEASE_COLUMNS),
            *more_rows_note(len(holder.leases), holder.leases_total),
        ]
    if holder.holds:
        yield from ["", table(holder.holds, HELD_BY_PROCESS)]
    for waits in holder.waits:
        yield from ["", *_waiting(waits)]
    if not holder.leases and not holder.waits:
        yield _("It no longer holds or waits for anything.")


def candidates_as_text(matches: Matches) -> Iterator[str]:
    """Yield the matches, as they can be typed."""
    for row in matches.resources:
        yield f"{row._meta.label} {one_line(row.pk)}: {one_line(row, 120)}"
    for name in matches.holders:
        yield _("holder %s") % one_line(name, 200)
    if matches.more:
        yield _("... more matches; type more of the name")


def first_as_typed(matches: Matches) -> str:
    """Return arguments of ``resourcepool_why`` that match only the first of them."""
    for row in matches.resources:
        return f"{row._meta.label} {shlex.quote(one_line(row.pk))}"
    return shlex.quote(one_line(matches.holders[0]))


def _resource(resource: ResourceExplanation) -> Iterator[tuple[str, object]]:
    yield _("state"), resource.state.label
    if resource.lease:
        yield _("held by"), resource.lease.holder
        if resource.lease.host:
            yield _("process"), f"{resource.lease.host} pid {resource.lease.pid}"
        yield _("since"), timestamp_with_age(resource.lease.since, resource.lease.held)
        yield _("expires in"), _("%s, unless renewed") % duration(resource.lease.expires_in)
        if resource.lease.renewal:
            yield _("last renewal"), resource.lease.renewal
        yield _("fence"), resource.lease.fence
    yield _("why"), resource.explanation
    verdict = resource.row.get_verdict_display() or _("none")
    yield _("last check"), verdict if resource.checked is None else f"{verdict}, {ago(resource.checked)}"


def _waiting(waiter: WaiterStatus) -> Iterator[Any]:
    values = {
        "place": f"{waiter.ahead + 1:,}",
        "pool": waiter.pool,
        "time": duration(waiter.waited),
        "priority": waiter.priority,
    }
    yield _("Waiting for %(pool)s for %(time)s: number %(place)s in line, priority %(priority)d") % values
    matching = ", ".join(f"{number:,} {state.label}" for state, number in waiter.matching.items() if number)
    facts = {_("wants"): _wants(waiter), _("matching"): matching or _("none"), _("why"): waiter.explanation}
    yield name_value_lines((f"{name}:", value) for name, value in facts.items())
    if waiter.in_front:
        yield _("Ahead of it in line:")
        yield table(waiter.in_front, AHEAD)
        if waiter.ahead > len(waiter.in_front):
            yield _("%s more") % f"{waiter.ahead - len(waiter.in_front):,}"
