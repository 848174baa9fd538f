"""What came of tickets: who was given something, who still waits, whose ticket is gone."""

from collections.abc import Iterator, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.leases import verbs
from resourcepool.leases.clock import monotonic
from resourcepool.leases.terms import margin
from resourcepool.leases.verbs import Grant
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.backoff import pause
from resourcepool.waiting.contention import speed_of
from resourcepool.waiting.free_rows import python_key
from resourcepool.waiting.tickets import Pairs, Seen
from resourcepool.waiting.waiter import Waiter


def look(connection: BaseDatabaseWrapper, those: Sequence[Waiter]) -> Iterator[tuple[Waiter, list[Grant]]]:
    """Look at the tickets of ``those``, who all have one; yield who was served, and with what.

    One whose ticket lapsed, because its process stood still for too long, has none afterwards.

    Raises:
        DatabaseUnavailable: those who have not been yielded stand where they stood.
    """
    sent_at = monotonic()
    found = tickets.look(connection, [waiter.ticket.pk for waiter in those if waiter.ticket])
    for waiter in those:
        seen = found.get(waiter.ticket.pk) if waiter.ticket else None
        if seen is None or (seen.is_waiting and not seen.is_alive):
            waiter.lost_ticket()
        elif seen.is_waiting:
            waiter.looked_at, waiter.holds, waiter.had_to_wait = sent_at, rows_of(waiter, seen), True
            waiter.trouble = None
        elif grants := _grants(connection, waiter, seen, sent_at):
            yield waiter, grants
        else:
            pass_on(connection, waiter, seen)
            waiter.lost_ticket()


def next_pause(waiter: Waiter) -> float:
    """Return how many seconds after a look that found nothing to look again."""
    waited, lasts = waiter.looked_at - waiter.began, waiter.ticket.lasts if waiter.ticket else 0.0
    return pause(waited, near=waiter.is_near, lasts=lasts)


def pass_on(connection: BaseDatabaseWrapper, waiter: Waiter, seen: Seen) -> None:
    """Give what this ticket was given to the next in line, and remove it."""
    if waiter.ticket is not None:
        tickets.remove(connection, [waiter.ticket.pk])
    for pk, fence in rows_of(waiter, seen):
        handover.release(connection, waiter.model, pk, fence, trusted_until=0.0)


def rows_of(waiter: Waiter, seen: Seen) -> Pairs:
    """Return the rows that a ticket was given, with primary keys as the model has them."""
    return tuple((python_key(waiter.model, pk), fence) for pk, fence in seen.granted)


def _grants(connection: BaseDatabaseWrapper, waiter: Waiter, seen: Seen, sent_at: float) -> list[Grant] | None:
    """Return what was granted, or None if it may have run out before it was seen.

    Trust begins when the look was sent that found it, and lasts for as long as the database said that it does: when it
    was given nobody here can know. That may be before the last look that found nothing, if its commit came later.
    """
    assert waiter.ticket is not None  # noqa: S101 (for the type checker)
    rows, now = rows_of(waiter, seen), monotonic()
    if len(rows) == 1:
        if now >= sent_at + seen.left - margin(seen.left):
            return None
        given_at = sent_at + seen.left - waiter.ticket.lasts
        speed_of(waiter.model, waiter.using).served(waiter.ticket.pk, given_at)
        return [Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]
    # They were given at different moments: one renewal tells that they are all there.
    if verbs.renew(connection, waiter.model, rows, waiter.request.terms.ttl) < len(rows):
        return None
    return [Grant(pk, fence, waiter.holder, now) for pk, fence in rows]
