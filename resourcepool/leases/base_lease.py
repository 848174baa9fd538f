"""One grant as the keeper sees it: renewed, leaked, lost, or released with others; and the events of all that."""

import logging
import math
import os
import threading
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import background
from resourcepool.db.open_transaction import OpenTransaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Ending, Grant, Terms, Trust, caller_location, format_location
from resourcepool.signals import SIGNALS, EventKind, RowEvent, emit_to_listeners

logger = logging.getLogger(__name__)


class BaseLease:
    """A grant of one row, from its beginning to its end. Implements ``Renewable``; ``Lease`` is the holder's side."""

    _is_delivered = False  # whether acquire() has returned it
    _loop: "weakref.ref[AbstractEventLoop] | None" = None  # of the asyncio task that acquires it
    _actor = ""  # the operator, for the history; "": a program
    _transaction: OpenTransaction | None

    def __init__(self, model: Model, using: str, grant: Grant, terms: Terms) -> None:
        self.model = model
        self.using = using
        self._terms = terms
        self._acquired_at = caller_location() if model.emits_events else None
        self._is_leak_reported = not model.emits_events
        connection = connections[using]
        try:
            self._take(grant, connection)
            self._emit(EventKind.ACQUIRED, connection)
        except BaseException:
            keeper.stop_renewing(self)  # the caller never gets this handle
            raise

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is noticed."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # lazy: rarely used
        return event

    def _stop_renewing(self) -> None:
        """Stop renewing it: unless it is released, it expires, or is released at the end of the process."""
        keeper.stop_renewing(self)

    @property
    def is_released(self) -> bool:
        """Whether it was released or handed over."""
        return bool(self._state.outcome)

    @property
    def _is_ending(self) -> bool:
        """Whether a thread is releasing it or handing it over now."""
        return self._state.is_ending

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

    @property
    def _leaks_at(self) -> float:
        """The time, by this process's clock, from which it counts as leaked; infinity: never, or already reported."""
        after = self._terms.leak_after
        return math.inf if after is None or self._is_leak_reported else self._trust.granted_at + after

    def _report_leak(self, why: str) -> None:
        """Report once that it may be leaked, and where it was acquired. It is still renewed."""
        if self._is_leak_reported:
            return
        self._is_leak_reported = True
        if self._acquired_at:
            why = sentence_for("acquired_at", why=why, place=format_location(self._acquired_at))
        logger.warning("%s may be leaked: %s", self, why)
        self._emit(EventKind.LEAKED, self._connection, why)

    def _mark_released(self) -> None:
        """Mark it as released, after a batch with others was."""
        self._finish("released")
        self._emit(EventKind.RELEASED, self._connection)

    @staticmethod
    def _after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Called once after the leases of these rows were released together."""

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

    def __reduce__(self) -> Any:
        raise TypeError(f"{self} belongs to this process, which renews it: send its key and its fence")

    def __str__(self) -> str:
        return f"lease of {self.model._meta.label} {self.pk}, fence {self.fence}"

    def _take(self, grant: Grant, connection: BaseDatabaseWrapper) -> None:
        self.pk, self.fence, self.holder = grant.pk, grant.fence, grant.holder
        self._pid = os.getpid()
        # The row is invisible to the keeper's connection until the commit.
        self._transaction = OpenTransaction(connection) if connection.atomic_blocks else None
        is_proven = self._transaction is None
        self._trust = Trust(self._terms, grant.sent_at, is_proven=is_proven, first_ttl=grant.ttl)
        self._state = Ending()  # last: a thread that sees a running lease sees all of the above
        keeper.keep(self)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _finish(self, outcome: str) -> None:
        self._state.end(outcome)
        keeper.remove(self)

    def _emit(self, kind: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if not self.model.emits_events:
            return
        terms, at = self._terms, monotonic()
        if not (terms.is_recorded or SIGNALS[kind].receivers):
            return
        is_start = kind is EventKind.ACQUIRED
        seconds = None if is_start else at - self._trust.granted_at
        ttl = terms.ttl if is_start and terms.max_hold is None else None
        grant = (self.model, self.using, self.pk, self.fence, self.holder)
        emit_to_listeners(
            RowEvent(kind, *grant, reason, self._actor or terms.actor, seconds, ttl, at),
            terms.is_recorded,
            connection,
        )
