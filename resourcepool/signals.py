"""Events of leases, resources, tasks, timers and channels: Django signals, sent in the process where it happened.

Signals only notify: without any receiver, the same rows change. They are sent after the commit. A receiver is called
with ``sender`` (the model) and ``event``, in the thread that noticed the event, so it must be quick. Its exceptions
are logged and go no further::

    @receiver(lease_lost, sender=Proxy)
    def stop(sender, event, **kwargs): ...

Not promised: a signal for every end of a lease. A killed process sends nothing; the sweep, perhaps in another process,
notices later that its lease expired. The history has the events of all processes.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import Signal

from resourcepool.clock import monotonic
from resourcepool.conf import pool_setting
from resourcepool.translation import gettext_lazy as _

logger = logging.getLogger(__name__)


class EventKind(models.TextChoices):
    """The kinds of events."""

    ACQUIRED = "acquired", _("acquired")
    RELEASED = "released", _("released")
    HANDED_OVER = "handed_over", _("handed over")
    LOST = "lost", _("lost")
    EXPIRED = "expired", _("expired")
    REVOKED = "revoked", _("revoked")
    FIXED = "fixed", _("fixed")
    QUARANTINED = "quarantined", _("quarantined")
    DRAINED = "drained", _("drained")
    RESERVED = "reserved", _("reserved")
    RETURNED = "returned", _("returned to service")
    CHECKED = "checked", _("checked")
    LEAKED = "leaked", _("leaked")
    ACKNOWLEDGED = "acknowledged", _("leak acknowledged")
    PAUSED = "paused", _("paused")
    RESUMED = "resumed", _("resumed")
    BLOCKED = "blocked", _("blocked")
    SKIPPED = "skipped", _("skipped")
    DEAD = "dead", _("dead-letter")
    RETRIED = "retried", _("retried")
    DISCARDED = "discarded", _("discarded")
    FAILED = "failed", _("failed")
    FIRED = "fired", _("fired by hand")
    CANCELLED = "cancelled", _("cancelled")
    MOVED = "moved", _("cursor moved")
    DELETED = "deleted", _("deleted")
    MISSED = "missed", _("missed")
    RESIZED = "resized", _("resized")
    SNOOZED = "snoozed", _("alarm snoozed")

    def has_listeners(self, model: type[models.Model]) -> bool:
        """Whether this kind has receivers, or events of ``model`` are recorded.

        On frequent paths check this before you make an event: most pools have no receivers, and some keep no history.
        """
        return bool(SIGNALS[self].receivers) or is_recorded(model)


@dataclass(slots=True)  # not frozen: that takes seven times as long to make, and each lease makes two
class RowEvent:
    """An event of one row. Receivers must not change it.

    Attributes:
        kind: the kind of event.
        model: the row's model; ``using`` and ``pk``: its database and primary key.
        fence: the fence of the grant; 0: the event is not about a grant.
        holder: the lease's holder; "": it had none.
        reason: one line for people.
        actor: the operator or REST user who caused it; "": a process of this project.
        seconds: how long the lease was held, or how long the check took; None: unknown.
        ttl: seconds the lease is valid after each renewal, only in the event of its acquisition; None: otherwise, or
            if ``max_hold`` shortens the last one.
        at: when, by this process's clock (``clock.monotonic``).
    """

    kind: EventKind
    model: type[models.Model]
    using: str
    pk: Any
    fence: int = 0
    holder: str = ""
    reason: str = ""
    actor: str = ""
    seconds: float | None = None
    ttl: float | None = None
    at: float = field(default_factory=monotonic)


lease_acquired = Signal()
lease_released = Signal()  # also by a hand over
lease_lost = Signal()  # noticed by its own holder
lease_expired = Signal()  # noticed by another process
lease_revoked = Signal()
lease_leaked = Signal()
leak_acknowledged = Signal()
resource_quarantined = Signal()  # also by a fix
resource_drained = Signal()  # also by a reservation
resource_returned = Signal()
resource_checked = Signal()
work_paused = Signal()  # of a stream, a dispenser or a topic
work_resumed = Signal()
work_given_up = Signal()  # a task or a timer: blocked, skipped, failed or a dead-letter
work_retried = Signal()  # by an operator
work_discarded = Signal()
timer_fired = Signal()
timer_cancelled = Signal()
subscription_moved = Signal()
subscription_missed = Signal()  # messages that were removed before it read them
semaphore_resized = Signal()  # by an operator
channel_deleted = Signal()  # or a subscription, or, by an operator, a barrier

alarm_raised = Signal()  # with ``alarm`` instead of ``event``
alarm_cleared = Signal()
alarm_snoozed = Signal()  # with the id of the ``alarm``, ``by`` and ``seconds`` instead of ``event``

SIGNALS: dict[EventKind, Signal] = {
    EventKind.ACQUIRED: lease_acquired,
    EventKind.RELEASED: lease_released,
    EventKind.HANDED_OVER: lease_released,
    EventKind.LOST: lease_lost,
    EventKind.EXPIRED: lease_expired,
    EventKind.REVOKED: lease_revoked,
    EventKind.LEAKED: lease_leaked,
    EventKind.ACKNOWLEDGED: leak_acknowledged,
    EventKind.FIXED: resource_quarantined,
    EventKind.QUARANTINED: resource_quarantined,
    EventKind.DRAINED: resource_drained,
    EventKind.RESERVED: resource_drained,
    EventKind.RETURNED: resource_returned,
    EventKind.CHECKED: resource_checked,
    EventKind.PAUSED: work_paused,
    EventKind.RESUMED: work_resumed,
    EventKind.BLOCKED: work_given_up,
    EventKind.SKIPPED: work_given_up,
    EventKind.DEAD: work_given_up,
    EventKind.FAILED: work_given_up,
    EventKind.RETRIED: work_retried,
    EventKind.DISCARDED: work_discarded,
    EventKind.FIRED: timer_fired,
    EventKind.CANCELLED: timer_cancelled,
    EventKind.MOVED: subscription_moved,
    EventKind.MISSED: subscription_missed,
    EventKind.DELETED: channel_deleted,
    EventKind.RESIZED: semaphore_resized,
    EventKind.SNOOZED: alarm_snoozed,
}


# Called with every event of a pool that keeps a history; a Django signal would cost more than everything else.
recorders: list[Callable[[RowEvent], object]] = []

# Called with a limit in seconds before a process ends without running atexit.
exit_hooks: list[Callable[[float], object]] = []


def emit(event: RowEvent) -> None:
    """Send the signal for ``event``, after the commit if a transaction is open on its database."""
    if event.kind.has_listeners(event.model):
        emit_to_listeners(event, is_recorded(event.model), connections[event.using])


def emit_to_listeners(event: RowEvent, recorded: bool, connection: BaseDatabaseWrapper) -> None:
    """``emit`` for a caller that has already checked ``has_listeners`` and ``is_recorded``."""
    if connection.in_atomic_block:
        # Not ``robust``: with it Django would swallow the exception of a signal handler. ``_send`` itself never raises.
        transaction.on_commit(partial(_send, event, recorded), using=event.using)
    else:
        _send(event, recorded)


def is_recorded(model: type[models.Model]) -> bool:
    """Whether events of ``model`` are recorded, by the current settings."""
    pool: Any = getattr(model, "pool", None)
    if pool is not None:
        return getattr(pool, "keeps_history", False)
    emits_events = getattr(model, "emits_events", False) or getattr(model, "records_operations", False)
    return emits_events and pool_setting(model._meta.label, "history", {}) is True


def _send(event: RowEvent, recorded: bool) -> None:
    for record in recorders if recorded else ():
        try:
            record(event)
        except Exception:
            logger.exception("event %r of %s was not recorded", str(event.kind), event.model._meta.label)
    signal = SIGNALS[event.kind]
    if signal.receivers:
        signal.send_robust(sender=event.model, event=event)  # Django logs a receiver's exceptions
