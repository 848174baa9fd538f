"""Looks at the tickets of waiters: which have been given their rows, and who is looked at when."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import attrgetter

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, margin
from resourcepool.waiting import tickets
from resourcepool.waiting.pacing import FIRST_IN_LINE
from resourcepool.waiting.release import release
from resourcepool.waiting.tickets import NewTicket, TicketState
from resourcepool.waiting.waiter import Waiter

TOGETHER = 0.005  # seconds: looks that are due within this time are one statement

# attrgetter is fast: a turn visits all waiters, maybe hundreds, many times a second.
PLACE, DUE = attrgetter("place"), attrgetter("due")
NEXT_LOOK, NEXT_SCAN, RENEW_AT = map(attrgetter, ("next_look", "next_scan", "renew_at"))


def look(
    connection: BaseDatabaseWrapper, waiters: Sequence[Waiter], noticed: Collection[int]
) -> Iterator[tuple[Waiter, list[Grant]]]:
    """Look at the tickets; yield waiters that were given their rows, and schedule the next look of the others.

    A waiter whose ticket expired, because its process was paused for too long, has no ticket afterwards.

    Raises:
        DatabaseUnavailable: waiters that were not yielded are unchanged.
    """
    sent_at = monotonic()
    states = tickets.look(connection, [ticket.pk for waiter in waiters if (ticket := waiter.ticket)])
    for waiter in waiters:
        ticket = waiter.ticket
        seen = states.get(ticket.pk) if ticket else None
        if ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):
            waiter.clear_ticket()
        elif seen.is_waiting:
            waiter.holds, waiter.db_error = waiter.rows_of(seen), None
            waiter.set_next_look(sent_at)
        elif grants := _grants(connection, waiter, ticket, seen, sent_at, was_woken=ticket.pk in noticed):
            yield waiter, grants
        else:
            pass_on(connection, waiter, seen)


def pass_on(connection: BaseDatabaseWrapper, waiter: Waiter, seen: TicketState) -> None:
    """Give the rows of this ticket to the next in line, and remove the ticket."""
    if (ticket := waiter.ticket) is not None:
        pk = ticket.pk
        while not tickets.leave(connection, [pk], seen.fence) and (now := tickets.look(connection, [pk])):
            seen = now[pk]  # it was given another row meanwhile
    for pk, fence in waiter.rows_of(seen):
        release(connection, waiter.model, pk, fence, trusted_until=0.0)
    waiter.clear_ticket()


def _grants(
    connection: BaseDatabaseWrapper,
    waiter: Waiter,
    ticket: NewTicket,
    seen: TicketState,
    sent_at: float,
    *,
    was_woken: bool,
) -> list[Grant] | None:
    """Return the grants, or None if they may have expired before this look.

    Trust begins when the look was sent, and lasts for the time left by the database's clock: this process cannot know
    when the rows were given. That may be before the previous look, if the commit came later.
    """
    rows, now = waiter.rows_of(seen), monotonic()
    if len(rows) == 1:
        if now >= sent_at + seen.left - margin(seen.left):
            return None
        given_at = sent_at + seen.left - ticket.grant_seconds
        waiter.pacing.given(ticket.pk, given_at)
        waiter.pacing.served(given_at - waiter.began, now, was_woken=was_woken)
        return [Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]
    # The rows were given at different times: one renewal confirms all of them.
    if verbs.renew(connection, waiter.model, rows, waiter.request.terms.ttl) < len(rows):
        return None
    return [Grant(pk, fence, waiter.holder, now) for pk, fence in rows]


def to_look_at(waiters: Sequence[Waiter], noticed: Collection[int], due_until: float) -> Sequence[Waiter]:
    """Return the waiters to look at: the first of each line, and those that are due or noticed.

    Lines per name are served strictly in order: there, only the first are looked at.
    """
    if len(waiters) == 1:
        return waiters if waiters[0].ticket else ()
    chosen, seen = list[Waiter](), Counter[str]()
    for waiter in sorted(waiters, key=PLACE):
        if (ticket := waiter.ticket) is None:
            continue  # it has just joined
        is_due = waiter.next_look <= due_until or ticket.pk in noticed
        if seen[waiter.line] < FIRST_IN_LINE or (is_due and not waiter.model.line_per_name):
            chosen.append(waiter)
        seen[waiter.line] += 1
    return chosen


def due_until(waiters: Sequence[Waiter], now: float) -> float:
    """Return until when looks are due together with those that are due at ``now``: for half a pause of these.

    One statement looks at many tickets, so the waiters of a process soon look together.
    """
    if len(waiters) == 1:
        return now
    due = (waiter.pause(now) for waiter in waiters if waiter.ticket and waiter.next_look <= now + TOGETHER)
    return now + max(TOGETHER, min(due, default=0.0) / 2)


def soonest(waiters: Collection[Waiter], when: Callable[[Waiter], float]) -> float:
    """Return the earliest of these moments; infinity without waiters."""
    return min(map(when, list(waiters)), default=math.inf)
