"""The handle of one grant: its holder keeps, checks and releases it, and the keeper renews it and notices its loss."""

import contextlib
import logging
import os
import threading
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import background
from resourcepool.db.open_transaction import OpenTransaction, guard_transaction
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseFromAnotherProcess, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import Model
from resourcepool.leases.terms import (
    MAX_LENGTH,
    MIN_TTL,
    Ending,
    Grant,
    Terms,
    Trust,
    caller_location,
    format_location,
)
from resourcepool.options import Seconds
from resourcepool.signals import SIGNALS, EventKind, RowEvent, emit_to_listeners

logger = logging.getLogger(__name__)


class Lease:
    """One row, held by this process until it is released, lost, or not renewed for ``ttl`` seconds.

    The keeper renews it in the background. The handle trusts itself until a margin before ``ttl`` has passed
    since its last confirmed renewal was *sent*; then ``lost`` is set, ``on_lost`` runs, and every further
    call raises ``LeaseLost``.

    Not promised: that a holder stops in time without checking (``ensure_held``, ``guard``). Only ``guard``, or a
    service that checks ``fence``, excludes a late write.

    Usable from any thread of the process that acquired it; as a context manager it releases at the end.
    The theory: docs/explanation/how-it-works.md.
    """

    _next_in_line: ClassVar[Any] = (
        None  # the module ``waiting.release``; None: rows of this kind have no waiters
    )
    _is_delivered = False  # whether acquire() has returned it; until then, a dropped handle expires
    _loop: "weakref.ref[AbstractEventLoop] | None" = None  # of the asyncio task that acquires it
    _actor = ""  # the operator, for the history; "": a program
    _transaction: OpenTransaction | None

    def __init__(self, model: Model, using: str, grant: Grant, terms: Terms) -> None:
        self.model, self.using, self._terms = model, using, terms
        self._acquired_at = caller_location() if model.emits_events else None
        self._is_leak_reported = not model.emits_events
        connection = connections[using]
        try:
            self._take(grant, connection)
            self._emit(EventKind.ACQUIRED, connection)
        except BaseException:
            self._stop_renewing()  # the caller never gets this handle
            raise

    @property
    def is_held(self) -> bool:
        """Whether this process still holds the lease. No I/O."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds until the lease must be renewed to stay held; 0 when it is not held."""
        state = self._state
        is_over = state.has_ended or state.is_ending or state.is_in_doubt or self._pid != os.getpid()
        return 0.0 if is_over else max(0.0, self._trust.until - monotonic())

    @property
    def is_released(self) -> bool:
        """Whether it was released or handed over."""
        return bool(self._state.outcome)

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is noticed."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # lazy: rarely used
        return event

    def ensure_held(self) -> None:
        """Raise unless this process still holds the lease. No I/O, so call it before each use.

        Raises:
            LeaseLost: it was lost, or not confirmed in time.
            LeaseReleased: it was released.
        """
        self._check_process()
        if not self._state.has_ended and (now := monotonic()) >= (trust := self._trust).until:
            self._lose(trust.end_reason(now), trust)
        self._state.raise_if_ended(self)

    def renew(self) -> None:
        """Extend the lease to now + ``ttl``; the keeper does so automatically. Raises LeaseLost when it is lost."""
        self.ensure_held()
        self._renew()

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while the lease is held.

        Renews the lease inside that transaction, which locks the row: no other process can acquire it before the
        commit. Keep the transaction shorter than half the ttl: the keeper cannot renew meanwhile, and the database
        server ends a session that is idle in it for a ttl (5 s at least; docs/operations/databases.md).

        Raises:
            LeaseLost: it is not held; the innermost ``atomic`` block rolls back, also if the error is caught inside it.
            GuardOutsideTransaction: no transaction is open on the lease's database.
        """
        with guard_transaction(self.using, self.ensure_held, "lease"):
            self._renew()
        yield self

    def release(self) -> None:
        """Release the lease; its row becomes free after ``cooldown`` seconds.

        From then on it is not renewed, so it expires if the database does not answer; ``release`` can be called again.

        Raises:
            LeaseReleased: it was released before.
            LeaseLost: it was lost before; a new holder is not affected.
            DatabaseUnavailable: it is unknown whether it was released.
        """
        self._check_process()
        if self._state.outcome:
            self._state.raise_if_ended(self)
        self._stop_renewing()  # before the statement, because nothing else does so after an error
        # Also if it counts as lost here: the fence decides, and a row that is still ours becomes free sooner.
        self._give_up(EventKind.RELEASED, "released", self._send_release)

    def _release_quietly(self) -> None:
        """Release the lease; log errors, because the caller has a more important exception, or cannot handle them."""
        try:
            self.release()
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except verbs.OWN_ERRORS as error:
            logger.warning("could not release %s; it will expire: %s", self, error)

    def _stop_renewing(self) -> None:
        """Stop renewing it: unless it is released, it expires, or is released at the end of the process."""
        self._is_renewed = False

    def hand_over(self, to: str, *, ttl: Seconds | None = None) -> int:
        """Hand the row over to a successor, who takes it with ``pool.adopt(pk, fence)``.

        In a transaction it takes effect with the commit, so notify the successor after that.

        Args:
            to: the successor's name, for people.
            ttl: seconds or timedelta within which the successor must adopt it; default: this lease's ttl.

        Returns:
            The successor's fence.

        Raises:
            LeaseLost: it was lost before.
        """
        self.ensure_held()
        span = self._terms.ttl if ttl is None else options.seconds("ttl", ttl, least=MIN_TTL)
        to = options.text("to", to, most=MAX_LENGTH)

        def send(connection: BaseDatabaseWrapper) -> int:
            return verbs.hand_over(connection, self.model, self.pk, self.fence, to=to, ttl=span)

        return int(self._give_up(EventKind.HANDED_OVER, f"handed over to {to}", send, f"to {to}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.outcome:
            return
        if error is None:
            self.release()
        else:
            self._release_quietly()  # the caller's exception matters more

    def __reduce__(self) -> Any:
        raise TypeError(f"{self} belongs to this process, which renews it: send its key and its fence")

    def __str__(self) -> str:
        return f"lease of {self.model._meta.label} {self.pk}, fence {self.fence}"

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.model._meta.label} {self.pk} fence={self.fence} {state}>"

    def _load(self) -> None:
        """Read lazy values now."""

    # The statements

    def _take(self, grant: Grant, connection: BaseDatabaseWrapper) -> None:
        self.pk, self.fence, self.holder = grant.pk, grant.fence, grant.holder
        self._pid = os.getpid()
        # The row is invisible to the keeper's connection until the commit.
        self._transaction = OpenTransaction(connection) if connection.atomic_blocks else None
        is_proven = self._transaction is None
        self._trust = Trust(self._terms, grant.sent_at, is_proven=is_proven, first_ttl=grant.ttl)
        self._is_renewed = True
        self._state = Ending()  # last: a thread that sees a running lease sees all of the above
        keeper.keep(self)

    def _renew(self) -> None:
        # The trust of this grant: another thread's ``fix()`` may move the handle to another row meanwhile.
        sent_at, trust, connection = monotonic(), self._trust, self._connection
        self._transaction = OpenTransaction(connection) if connection.atomic_blocks else None
        with statement_timeout():
            is_held = verbs.renew(connection, self.model, [(self.pk, self.fence)], trust.next_ttl(sent_at))
        if not is_held:
            self._lose(verbs.TAKEN, trust)
            self.ensure_held()
        if self._transaction is not None:  # a rollback would undo it
            transaction.on_commit(partial(trust.confirm, sent_at), using=self.using)
        elif connection.autocommit:  # otherwise Django does not see the commit
            trust.confirm(sent_at)

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        """Release the row; False: it was lost before."""
        row, until = (connection, self.model, self.pk, self.fence), self._trust.until
        if self._next_in_line is None or self._terms.cooldown:  # assigned to a waiter after the cool-down
            return verbs.release(*row, self._terms.cooldown, trusted_until=until)
        return bool(self._next_in_line.release(*row, trusted_until=until))

    def _give_up(
        self, kind: EventKind, outcome: str, send: Callable[[BaseDatabaseWrapper], Any], reason: str = ""
    ) -> Any:
        """End the grant by ``send``, which returns whether it was still ours; after an error it has not ended."""
        state, connection = self._state, self._connection
        state.begin(self)
        try:
            with statement_timeout():
                if done := send(connection):
                    self._end(kind, outcome, connection, reason)
        except BaseException:
            state.is_in_doubt = True  # for good, because the statement may arrive late
            raise
        finally:
            state.is_ending = False
        if not done:
            self._lose(verbs.TAKEN)
        if state.lost is not None:
            raise state.lost.again()
        return done

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise LeaseFromAnotherProcess(
                f"{self} belongs to process {self._pid}; this is process {os.getpid()}. "
                "Acquire after the fork, or hand it over: fence = lease.hand_over(..), pool.adopt(pk, fence)"
            )

    # How it ended

    def _end(self, kind: EventKind, outcome: str, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        self._state.end(outcome)
        keeper.remove(self)
        self._emit(kind, connection, reason)

    def _mark_released(self) -> None:
        """Mark it as released, after a batch with others was."""
        self._end(EventKind.RELEASED, "released", self._connection)

    def _lose(self, reason: str, trust: Trust | None = None) -> None:
        """Mark the lease as lost, once: set ``lost`` and run ``on_lost``.

        Args:
            trust: the trust window of the lost grant; ignored if the handle has another grant by now.
        """
        state = self._state
        if state.is_ending or trust not in (None, self._trust):
            return  # the thread that releases it learns from the fence how it ended
        is_first = state.end(lost=LeaseLost(f"{self} of {self.holder} is lost: {reason}"))
        if is_first or state is self._state:
            keeper.remove(self)
        if not is_first:
            return
        self.lost.set()
        if self._terms.on_lost is not None:  # before the receivers of signals, which may fail
            # In its own thread, so that it cannot delay the keeper.
            try:
                background.start("on-lost", partial(self._terms.on_lost, self))
            except RuntimeError:
                logger.exception("on_lost of %s could not be run", self)
        logger.warning("%s", self._state.lost)
        self._emit(EventKind.LOST, self._connection, reason)

    def _emit(self, kind: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        terms, at = self._terms, monotonic()
        if not (self._emits(kind) and (terms.is_recorded or SIGNALS[kind].receivers)):
            return
        is_start = kind is EventKind.ACQUIRED
        seconds = None if is_start else at - self._trust.granted_at
        ttl = terms.ttl if is_start and terms.max_hold is None else None
        grant = (self.model, self.using, self.pk, self.fence, self.holder)
        event = RowEvent(kind, *grant, reason, self._actor or terms.actor, seconds, ttl, at)
        emit_to_listeners(event, terms.is_recorded, connection)

    def _emits(self, kind: EventKind) -> bool:
        return self.model.emits_events

    # For the keeper

    @property
    def _is_in_transaction(self) -> bool:
        """Whether a transaction of this process has the row locked, so a renewal would have to wait."""
        if self._transaction is not None and not self._transaction.is_open:
            self._transaction = None
        return self._transaction is not None

    @property
    def _is_orphaned(self) -> bool:
        """Whether no code can release it: its asyncio task never received it, and the loop is closed."""
        if self._is_delivered or self._loop is None:
            return False
        loop = self._loop()
        return loop is None or loop.is_closed()

    def _report_leak(self, why: str) -> None:
        if self._is_leak_reported:
            return
        self._is_leak_reported = True
        if self._acquired_at:
            why = sentence_for("acquired_at", why=why, place=format_location(self._acquired_at))
        logger.warning("%s may be leaked: %s", self, why)
        self._emit(EventKind.LEAKED, self._connection, why)
