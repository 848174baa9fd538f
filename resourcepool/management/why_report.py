"""All that is known of one resource or one holder, as text."""

import shlex
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.events import localized
from resourcepool.management.layout import (
    ago,
    more_rows_note,
    name_value_lines,
    one_line,
    or_dash,
    timestamp_with_age,
)
from resourcepool.management.locks_report import HELD_BY_PROCESS
from resourcepool.management.status_report import LEASE_COLUMNS
from resourcepool.management.tables import Column, table
from resourcepool.status.search import Matches
from resourcepool.status.snapshots import duration
from resourcepool.status.waiters import TicketStatus, WaiterStatus
from resourcepool.status.why import HolderExplanation, ResourceExplanation


def _wants(place: TicketStatus) -> str:
    wants_text = place.wants_text or _("any")
    return f"{place.count} x {wants_text}"


ENDINGS = (
    Column(gettext_lazy("at"), lambda one: timestamp_with_age(one.at, one.age)),
    Column(gettext_lazy("how"), lambda one: one.what.label),
    Column(gettext_lazy("held for"), lambda one: or_dash(one.seconds, duration)),
    Column(gettext_lazy("holder"), lambda one: or_dash(one.holder)),
    Column(gettext_lazy("by"), lambda one: or_dash(one.actor)),
    Column(gettext_lazy("reason"), lambda one: or_dash(localized(one.reason))),
)
IN_FRONT = (
    Column(gettext_lazy("holder"), lambda one: one.holder),
    Column(gettext_lazy("wants"), _wants),
    Column(gettext_lazy("waits for"), lambda one: duration(one.waited)),
    Column(gettext_lazy("priority"), lambda one: one.priority),
)


def resource_as_text(one: ResourceExplanation) -> Iterator[Any]:
    yield f"{one.pool} {one_line(one.row.pk)}: {one_line(one.row, 120)}"
    yield name_value_lines((f"{name}:", value) for name, value in _resource(one))
    yield ""
    if one.endings:
        yield _("How its last leases ended:")
        yield table(one.endings, ENDINGS)
    else:
        yield _("The history tells of no lease that ended.")


def holder_as_text(one: HolderExplanation) -> Iterator[Any]:
    yield one_line(one.holder, 200)
    if one.leases:
        yield from [
            "",
            _("It holds:"),
            table(one.leases, LEASE_COLUMNS),
            *more_rows_note(len(one.leases), one.leases_total),
        ]
    if one.holds:
        yield from ["", table(one.holds, HELD_BY_PROCESS)]
    for waits in one.waits:
        yield from ["", *_waiting(waits)]
    if not one.leases and not one.waits:
        yield _("It holds nothing and waits for nothing any more.")


def candidates_as_text(found: Matches) -> Iterator[str]:
    """Yield the candidates, in a form that can be typed."""
    for row in found.resources:
        yield f"{row._meta.label} {one_line(row.pk)}: {one_line(row, 120)}"
    for name in found.holders:
        yield _("holder %s") % one_line(name, 200)
    if found.more:
        yield _("... and more; say more of it")


def first_as_typed(found: Matches) -> str:
    """Return the words by which ``resourcepool_why`` knows the first of them alone."""
    for row in found.resources:
        return f"{row._meta.label} {shlex.quote(one_line(row.pk))}"
    return shlex.quote(one_line(found.holders[0]))


def _resource(one: ResourceExplanation) -> Iterator[tuple[str, object]]:
    yield _("state"), one.state.label
    if one.lease:
        yield _("held by"), one.lease.holder
        if one.lease.host:
            yield _("process"), f"{one.lease.host} pid {one.lease.pid}"
        yield _("since"), timestamp_with_age(one.lease.since, one.lease.held)
        yield _("runs out in"), _("%s, unless renewed") % duration(one.lease.expires_in)
        if one.lease.renewal:
            yield _("last renewal"), one.lease.renewal
        yield _("fence"), one.lease.fence
    yield _("why"), one.explanation
    verdict = one.row.get_verdict_display() or _("none")
    yield _("last check"), verdict if one.checked is None else f"{verdict}, {ago(one.checked)}"


def _waiting(one: WaiterStatus) -> Iterator[Any]:
    place_in_line = {
        "place": f"{one.ahead + 1:,}",
        "pool": one.pool,
        "time": duration(one.waited),
        "priority": one.priority,
    }
    yield _("Waits for %(pool)s: number %(place)s in line, for %(time)s, priority %(priority)d") % place_in_line
    matching = ", ".join(f"{number:,} {state.label}" for state, number in one.matching.items() if number)
    said = {_("wants"): _wants(one), _("matching"): matching or _("none"), _("why"): one.explanation}
    yield name_value_lines((f"{name}:", value) for name, value in said.items())
    if one.in_front:
        yield _("In front of it:")
        yield table(one.in_front, IN_FRONT)
        if one.ahead > len(one.in_front):
            yield _("%s more") % f"{one.ahead - len(one.in_front):,}"
