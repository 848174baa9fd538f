"""What is known of one resource or one holder, for people and for programs."""

import shlex
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from resourcepool.events import shown
from resourcepool.history.models import Event
from resourcepool.management.layout import ago, moment, padded, plain, table
from resourcepool.management.status_report import holding_as_json, holdings_as_text, locked_as_json
from resourcepool.status.durations import duration
from resourcepool.status.search import Matches
from resourcepool.status.waiting import MAX_WISH, InLine, Waiting
from resourcepool.status.why import Holder, Resource

LONG = 300  # characters of a sentence with something in it that others wrote


def resource_as_text(one: Resource) -> Iterator[str]:
    """Yield what is known of a resource."""
    yield f"{one.pool} {plain(one.row.pk)}: {plain(one.row, 120)}"
    yield _line(_("state"), str(one.state.label))
    if one.holding:
        yield _line(_("held by"), plain(one.holding.holder, 200))
        if one.holding.host:
            yield _line(_("process"), plain(f"{one.holding.host} pid {one.holding.pid}", 120))
        yield _line(_("since"), moment(one.holding.since, one.holding.held))
        yield _line(_("runs out in"), _("%s, unless renewed") % duration(one.holding.expires_in))
        if one.holding.renewal:
            yield _line(_("last renewal"), str(one.holding.renewal))
        yield _line(_("fence"), str(one.holding.fence))
    yield _line(_("why"), plain(one.because, 600))
    verdict = plain(one.row.get_verdict_display()) or _("none")
    yield _line(_("last check"), verdict if one.checked is None else f"{verdict}, {ago(one.checked)}")
    yield ""
    if one.endings:
        yield _("How its last leases ended:")
        yield from _endings(one.endings)
    else:
        yield _("The history tells of no lease that ended.")


def holder_as_text(one: Holder) -> Iterator[str]:
    """Yield what a holder has and waits for."""
    yield plain(one.name, 200)
    if one.holds:
        yield from ["", _("It holds:"), *holdings_as_text(one.holds)]
    for place in one.waits:
        yield from ["", *_waiting(place)]
    if not one.holds and not one.waits:
        yield _("It holds nothing and waits for nothing any more.")


def candidates_as_text(found: Matches) -> Iterator[str]:
    """Yield who may be meant, in a form that can be typed."""
    for row in found.rows:
        yield f"{row._meta.label} {plain(row.pk)}: {plain(row, 120)}"
    for name in found.holders:
        yield _("holder %s") % plain(name, 200)
    if found.is_cut_short:
        yield _("... and more; say more of it")


def first_as_typed(found: Matches) -> str:
    """Return the words by which ``resourcepool_why`` knows the first of them alone."""
    for row in found.rows:
        return f"{row._meta.label} {shlex.quote(plain(row.pk))}"
    return shlex.quote(plain(found.holders[0]))


def resource_as_json(one: Resource) -> dict[str, Any]:
    """Return what is known of a resource; the keys are documented in docs/commands.md and stay as they are."""
    renewal = one.holding.renewal if one.holding else None
    return {
        "pool": one.pool,
        "id": one.row.pk,
        "resource": str(one.row),
        "state": one.state.value,
        "because": one.because,
        "reason": one.reason,
        "fence": one.row.fence,
        "locked": locked_as_json(one.locked) if one.locked else None,
        "lease": holding_as_json(one.holding) if one.holding else None,
        "renewed": _rounded(renewal.ago if renewal else None),
        "overdue": renewal.is_overdue if renewal else None,
        "busy_for": _rounded(one.busy_for),
        "back_in": _rounded(one.back_in),
        "verdict": one.row.verdict,
        "checked": _rounded(one.checked),
        "endings": [_ending_as_json(event) for event in one.endings],
    }


def holder_as_json(one: Holder) -> dict[str, Any]:
    """Return what a holder has and waits for; see ``resource_as_json``."""
    return {
        "holder": one.name,
        "leases": [holding_as_json(held) for held in one.holds],
        "waits": [_waiting_as_json(place) for place in one.waits],
    }


def candidates_as_json(found: Matches) -> dict[str, Any]:
    """Return who may be meant; see ``resource_as_json``."""
    rows = [{"pool": row._meta.label, "id": row.pk, "resource": str(row)} for row in found.rows]
    return {"resources": rows, "holders": found.holders, "more": found.is_cut_short}


def _endings(events: list[Event]) -> list[str]:
    head = [_("at"), _("how"), _("held for"), _("holder"), _("by"), _("reason")]
    return table(
        head,
        [
            [
                moment(event.at, event.age),
                event.get_what_display(),
                "-" if event.seconds is None else duration(event.seconds),
                event.holder or "-",
                event.actor or "-",
                shown(event.reason) or "-",
            ]
            for event in events
        ],
    )


def _waiting(one: Waiting) -> Iterator[str]:
    place = one.place
    place_in_line = {
        "place": f"{one.ahead + 1:,}",
        "pool": place.pool,
        "time": duration(place.waited),
        "priority": place.priority,
    }
    yield _("Waits for %(pool)s: number %(place)s in line, for %(time)s, priority %(priority)d") % place_in_line
    yield _line(_("wants"), f"{place.count} x {_wants(place)}")
    yield _line(_("matching"), _counts(one))
    yield _line(_("why"), plain(one.because, LONG))
    if one.in_front:
        yield _("In front of it:")
        head = [_("holder"), _("wants"), _("waits for"), _("priority")]
        rows = [[p.holder, f"{p.count} x {_wants(p)}", duration(p.waited), p.priority] for p in one.in_front]
        yield from table(head, rows)
        if one.ahead > len(one.in_front):
            yield _("%s more") % f"{one.ahead - len(one.in_front):,}"


def _wants(place: InLine) -> str:
    return plain(place.wish, MAX_WISH) or _("any")


def _counts(one: Waiting) -> str:
    said = [f"{number:,} {state.label}" for state, number in one.matching.items() if number]
    return ", ".join(said) or _("none")


def _waiting_as_json(one: Waiting) -> dict[str, Any]:
    return {
        **_place_as_json(one.place),
        "ahead": one.ahead,
        "in_front": [_place_as_json(place) for place in one.in_front],
        "matching": {state.value: number for state, number in one.matching.items()},
        "next_free_in": _rounded(one.next_free_in),
        "because": one.because,
    }


def _place_as_json(place: InLine) -> dict[str, Any]:
    return {
        "ticket": place.ticket,
        "pool": place.pool,
        "holder": place.holder,
        "wants": dict(place.wants),
        "count": place.count,
        "priority": place.priority,
        "waited": round(place.waited, 1),
    }


def _ending_as_json(event: Event) -> dict[str, Any]:
    names = ("at", "what", "fence", "holder", "actor", "reason", "seconds", "host", "pid")
    return {name: getattr(event, name) for name in names}


def _line(name: str, value: str) -> str:
    return f"  {padded(f'{name}:', 14)}{value}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
