"""Puts facts into the history's table, whatever is in them: one that cannot be written does not stop the others."""

import logging
import os
import socket
from collections.abc import Sequence
from functools import partial

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connections, router

from resourcepool.dialect import DbLater
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.held import grant, held
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, MAX_TEXT, Event, storable
from resourcepool.leases.clock import monotonic
from resourcepool.leases.retry import retrying
from resourcepool.signals import Fact, What

BATCH = 500  # events in one statement

# The database's fault, and over some day: what waits is written then. Anything else is the fault of one event.
NOT_NOW = (ResourcePoolError, OperationalError, InterfaceError, InternalError, ProgrammingError)

logger = logging.getLogger(__name__)

_host = socket.gethostname()[:80]


def write(facts: Sequence[Fact]) -> None:
    """Add these facts to the history; one that the database cannot take is left out, and the log says so.

    Raises:
        DatabaseUnavailable: and the others of ``NOT_NOW``: nothing, or not all of them, is written.
    """
    try:
        _write(facts)
    except NOT_NOW:
        raise
    except Exception as error:  # noqa: BLE001 (drivers have many kinds for what cannot be stored)
        if len(facts) > 1:
            for fact in facts:
                write([fact])
        else:
            # Not the error's own text: drivers repeat in it what they were given.
            what = (str(facts[0].what), facts[0].model._meta.label, facts[0].pk, type(error).__name__)
            logger.error("the event %r of %s %r cannot be written, and is left out: %s", *what)  # noqa: TRY400


def write_gap(count: int) -> None:
    """Say in the history that so many events of this process are missing; raises DatabaseUnavailable."""
    reason = f"{count} events of this process were not written down: too many waited"
    gap = Event(at=DbLater(0), what=What.LOST, reason=reason, host=_host, pid=os.getpid())
    using = router.db_for_write(Event)
    retrying(connections[using], partial(gap.save, using=using, force_insert=True))


def _write(facts: Sequence[Fact]) -> None:
    using = router.db_for_write(Event)
    retrying(connections[using], partial(_add, facts, using))


def _add(facts: Sequence[Fact], using: str) -> None:
    now = monotonic()
    lasted = held(facts, now, using)
    events = [_event(fact, now, lasted.get(grant(fact))) for fact in facts]
    Event.objects.using(using).bulk_create(events, batch_size=BATCH)


def _event(fact: Fact, now: float, lasted: float | None) -> Event:
    return Event(
        at=DbLater(fact.at - now),
        what=fact.what,
        pool=fact.model._meta.label_lower,
        row=storable(fact.pk, MAX_ROW),
        fence=fact.fence,
        holder=storable(fact.holder, MAX_TEXT),
        actor=storable(fact.actor, MAX_ACTOR),
        reason=storable(fact.reason, MAX_TEXT),
        seconds=lasted if fact.what is What.REVOKED else fact.seconds,
        ttl=fact.ttl,
        host=_host,
        pid=os.getpid(),
    )
