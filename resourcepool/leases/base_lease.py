"""One grant as the keeper has it: renewed, in a transaction, leaked, released with others, lost; and who is told."""

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

from resourcepool.database import background
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import OpenTransaction, set_idle_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Ending, Grant, Terms, Trust, acquired_at, written
from resourcepool.signals import SIGNALS, EventKind, RowEvent, emit_to_listeners

logger = logging.getLogger(__name__)


class BaseLease:
    """A grant of one row from its beginning to its end; what its holder does with it is in ``Lease``.

    It is what the keeper, and the end of the process, know of a lease: see ``Renewable``.
    """

    is_delivered = False  # whether the caller of acquire has got it
    loop: "weakref.ref[AbstractEventLoop] | None" = None  # of the task that is to get it, or reads with it
    actor = ""  # the operator who acts, for the history; "": a program
    _transaction: OpenTransaction | None

    def __init__(self, model: Model, using: str, grant: Grant, terms: Terms) -> None:
        self.model = model
        self.using = using
        self.terms = terms
        self._acquired_at = acquired_at() if model.emits_events else None
        self._is_leak_told = not model.emits_events
        connection = connections[using]
        try:
            self._take(grant, connection)
            self._emit(EventKind.ACQUIRED, connection)
        except BaseException:
            keeper.stop_renewing(self)  # nobody will ever have this handle
            raise

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is noticed."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # used rarely
        return event

    def stop_renewing(self) -> None:
        """Never renew it again: if it is not given back, it expires or is released at the end of the process."""
        keeper.stop_renewing(self)

    @property
    def is_released(self) -> bool:
        """Whether it was released, or handed over."""
        return bool(self._state.given)

    @property
    def is_ending(self) -> bool:
        """Whether a thread is giving it up at this moment."""
        return self._state.is_ending

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction of this process has the row locked, so that a renewal would have to wait."""
        if self._transaction is not None and not self._transaction.is_open:
            self._transaction = None
        return self._transaction is not None

    @property
    def is_orphaned(self) -> bool:
        """Whether nobody can give it back: its task never got it, and never will, for the loop is closed."""
        if self.is_delivered or self.loop is None:
            return False
        loop = self.loop()
        return loop is None or loop.is_closed()

    @property
    def leaks_at(self) -> float:
        """The time, by this process's clock, from which it counts as leaked; infinity: never, or already reported."""
        after = self.terms.leak_after
        return math.inf if after is None or self._is_leak_told else self.trust.granted_at + after

    def report_leak(self, why: str) -> None:
        """Report once that it was probably forgotten, and where it was acquired. It is renewed all the same."""
        if self._is_leak_told:
            return
        self._is_leak_told = True
        if self._acquired_at:
            why = sentence_for("acquired_at", why=why, place=written(self._acquired_at))
        logger.warning("%s may be leaked: %s", self, why)
        self._emit(EventKind.LEAKED, self._connection, why)

    def mark_released(self) -> None:
        """Note that it has been released together with others."""
        self._finish("released")
        self._emit(EventKind.RELEASED, self._connection)

    @staticmethod
    def after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Called once after several leases of ``model``, of the rows with these keys, have been released together."""

    def lose(self, reason: str, trust: Trust | None = None) -> None:
        """Note the loss once: set ``lost``, run ``on_lost``.

        Args:
            trust: of the lost grant; if the handle has another grant by now, nothing is done.
        """
        state = self._state
        if state.is_ending or trust not in (None, self.trust):
            return  # the thread that is giving it up learns from the fence how it ended
        is_first = state.end(lost=LeaseLost(f"{self} of {self.holder} is lost: {reason}"))
        if is_first or state is self._state:
            keeper.remove(self)
        if not is_first:
            return
        self.lost.set()
        if self.terms.on_lost is not None:  # before receivers of signals, which may fail
            # In its own thread: it may take as long as it likes without delaying the keeper.
            try:
                background.start("on-lost", partial(self.terms.on_lost, self))
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
        # Invisible to the keeper until it commits.
        self._transaction = self._opened(connection) if connection.atomic_blocks else None
        is_proven = self._transaction is None
        self.trust = Trust(self.terms, grant.sent_at, is_proven=is_proven, first_ttl=grant.ttl)
        self._state = Ending()  # last: a thread that sees a running lease sees all of the above
        keeper.keep(self)

    def _opened(self, connection: BaseDatabaseWrapper) -> OpenTransaction:
        set_idle_timeout(connection, self.terms.ttl)
        return OpenTransaction(connection)

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _finish(self, given: str) -> None:
        self._state.end(given)
        keeper.remove(self)

    def _emit(self, what: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if not self.model.emits_events:
            return
        terms, at = self.terms, monotonic()
        if not (terms.is_recorded or SIGNALS[what].receivers):
            return
        begins = what is EventKind.ACQUIRED
        seconds = None if begins else at - self.trust.granted_at
        ttl = terms.ttl if begins and terms.max_hold is None else None
        which = (self.model, self.using, self.pk, self.fence, self.holder)
        emit_to_listeners(
            RowEvent(what, *which, reason, self.actor or terms.actor, seconds, ttl, at),
            terms.is_recorded,
            connection,
        )
