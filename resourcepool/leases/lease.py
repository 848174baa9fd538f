"""The handle of one grant: what a holder keeps, checks and gives back."""

import contextlib
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database import background
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import OpenTransaction, limit_silence, rolled_back_on_error
from resourcepool.database.retry import answer_timeout
from resourcepool.events import say
from resourcepool.exceptions import (
    DatabaseUnavailable,
    GuardOutsideTransaction,
    LeaseFromAnotherProcess,
    LeaseLost,
)
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.table import Model
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Ending, Grant, Terms, Trust, acquired_at, written
from resourcepool.signals import SIGNALS, Fact, What, tell_heard

logger = logging.getLogger(__name__)


class _Itself(property):
    """``__enter__`` that returns the handle.

    In a ``with`` statement it runs no Python code of ours, before which a signal could be handled: a caller of
    ``with pool.acquire()`` is in the block, or has not been given anything. ``ExitStack`` calls it.
    """

    def __call__(self, lease: "Lease") -> "Lease":
        return lease


class Lease:
    """One row, held by this process until it is released, lost, or not renewed for ``ttl`` seconds.

    The keeper renews it in the background. The handle trusts itself until a margin before ``ttl`` has passed
    since its last confirmed renewal was *sent*; then ``lost`` is set, ``on_lost`` runs, and every further
    call raises ``LeaseLost``.

    Not promised: that a holder which does not check (``ensure_held``, ``guard``) stops in time. Only ``guard``
    and a far end that checks ``fence`` exclude a late write.

    Usable from any thread of the process that acquired it; as a context manager it releases at the end.
    The theory: docs/how-it-works.md. Requirements R0.2, R0.5 and R0.6: docs/origins.md.
    """

    is_delivered = False  # whether the caller of acquire has got it
    actor = ""  # the operator who acts, for the history; "": a program

    def __init__(self, model: Model, using: str, grant: Grant, terms: Terms) -> None:
        self.model = model
        self.using = using
        self.terms = terms
        self._acquired_at = acquired_at() if model.is_told else None
        self._is_leak_told = not model.is_told
        connection = connections[using]
        try:
            self._take(grant, connection)
            self._tell(What.ACQUIRED, connection)
        except BaseException:
            keeper.let_go(self)  # nobody will ever have this handle
            raise

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
        limit_silence(connection, self.terms.ttl)
        return OpenTransaction(connection)

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the loss is noticed."""
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())  # used rarely
        return event

    @property
    def is_held(self) -> bool:
        """Whether this process may still rely on the lease. No I/O."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds for which the lease can be relied on without another renewal; 0 when it is not held."""
        over = self._state.is_near or self._pid != os.getpid()
        return 0.0 if over else max(0.0, self.trust.until - monotonic())

    def ensure_held(self) -> None:
        """Return if this process may still rely on the lease. No I/O, so call it before each use.

        Raises:
            LeaseLost: it has been lost, or was not confirmed in time.
            LeaseReleased: it has been released.
        """
        self._check_process()
        if not self._state.has_ended and (now := monotonic()) >= (trust := self.trust).until:
            self.lose(trust.why_over(now), trust)
        self._state.refuse(self)

    def renew(self) -> None:
        """Extend the lease to now + ``ttl``; the keeper does so automatically. Raises LeaseLost when it is lost."""
        self.ensure_held()
        self._renew()

    def release(self) -> None:
        """Give the row back, to rest for ``cooldown`` seconds.

        Raises:
            LeaseReleased: it was released before.
            LeaseLost: it was lost before; nothing has been changed for the new holder.
        """
        self._check_process()
        if self._state.given:
            self._state.refuse(self)
        # Also when it counts as lost here: the fence decides, and a row that is still ours is freed sooner.
        self._give_up(What.RELEASED, "released", self._send_release)

    def let_go(self) -> None:
        """Never renew it again: if it is not given back, it expires or is released at the end of the process."""
        keeper.let_go(self)

    def give_back(self) -> None:
        """Release for good: if the database does not confirm it, the lease is not renewed any more and expires.

        Raises:
            LeaseReleased, LeaseLost: see ``release``.
            DatabaseUnavailable: it expires.
        """
        self.let_go()  # before the statement: after an interruption nobody would give it back later
        self.release()

    def abandon(self) -> None:
        """Give back without raising, for callers with a more important error of their own."""
        try:
            self.give_back()
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except DatabaseUnavailable as error:
            logger.warning("could not release %s; it lapses by itself: %s", self, error)
        except Exception:
            logger.exception("could not release %s; it lapses by itself", self)

    def hand_over(self, to: str, *, ttl: object = None) -> int:
        """Pass the row straight to a successor, who takes it up with ``pool.adopt(pk, fence)``.

        Args:
            to: the successor's name, for people to read.
            ttl: seconds or timedelta within which the successor must adopt it; default: this lease's ttl.

        Returns:
            The successor's fence.

        Raises:
            LeaseLost: it was lost before.
        """
        self.ensure_held()
        span = self.terms.ttl if ttl is None else options.seconds("ttl", ttl, least=MIN_TTL)
        to = options.text("to", to, most=MAX_LENGTH)

        def hand_over(connection: BaseDatabaseWrapper) -> bool:
            return verbs.hand_over(connection, self.model, self.pk, self.fence, to=to, ttl=span)

        self._give_up(What.HANDED_OVER, f"handed over to {to}", hand_over, f"to {to}")
        return self.fence + 1

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while the lease is held.

        Renews the lease inside that transaction. From then on the row is locked, so nobody can take it over
        before the commit. Keep the transaction shorter than half the ttl: the keeper cannot renew meanwhile, and a
        session that is silent in it for a ttl (5 s at least) is ended by the server (docs/databases.md).

        Raises:
            LeaseLost: it is not held; the innermost ``atomic`` block rolls back, also if the error is caught inside it.
            GuardOutsideTransaction: no transaction is open on the lease's database.
        """
        with rolled_back_on_error(self.using):
            self.ensure_held()
            if not self._connection.in_atomic_block:
                raise GuardOutsideTransaction(
                    f"guard() protects an open transaction on database {self.using!r}; there is none. "
                    "Write: with transaction.atomic(), lease.guard(): ..."
                )
            self._renew()
        yield self

    if TYPE_CHECKING:

        def __enter__(self) -> Self: ...
    else:
        __enter__ = _Itself(weakref.ref)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.given:
            return
        if error is None:
            self.give_back()
        else:
            self.abandon()  # the caller's own error matters more

    def __str__(self) -> str:
        return f"lease of {self.model._meta.label} {self.pk}, fence {self.fence}"

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.model._meta.label} {self.pk} fence={self.fence} {state}>"

    # For the keeper: see ``Renewable``

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
            why = say("acquired_at", why=why, place=written(self._acquired_at))
        logger.warning("%s may be leaked: %s", self, why)
        self._tell(What.LEAKED, self._connection, why)

    def was_released(self) -> None:
        """Note that it has been released together with others."""
        self._finish("released")
        self._tell(What.RELEASED, self._connection)

    @staticmethod
    def were_released(using: str, model: Model, pks: Sequence[Any]) -> None:
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
            keeper.forget(self)
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
        self._tell(What.LOST, self._connection, reason)

    # The rest is private

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        row = (connection, self.model, self.pk, self.fence)
        return verbs.release(*row, self.terms.cooldown, trusted_until=self.trust.until)

    def _renew(self) -> None:
        # Of this grant: another thread may ``fix()`` the handle meanwhile, which then has another row.
        sent_at, trust = monotonic(), self.trust
        self._transaction = self._opened(self._connection) if self._connection.atomic_blocks else None
        held = [(self.pk, self.fence)]
        with answer_timeout():
            is_held = verbs.renew(self._connection, self.model, held, trust.next_ttl(sent_at))
        if not is_held:
            self.lose(verbs.TAKEN, trust)
            self.ensure_held()
        if self._transaction is not None:  # it counts once the transaction is committed: a rollback undoes it
            transaction.on_commit(partial(trust.confirm, sent_at), using=self.using)
        elif self._connection.autocommit:  # otherwise its commit is not noticed
            trust.confirm(sent_at)

    def _give_up(
        self, what: What, given: str, send: Callable[[BaseDatabaseWrapper], object], reason: str = ""
    ) -> None:
        """End the grant by ``send``, which returns whether it was still ours; if it fails, nothing has ended."""

        def give_up() -> bool:
            connection = self._connection
            with answer_timeout():
                if connection.atomic_blocks:
                    limit_silence(connection, self.terms.ttl)
                done = bool(send(connection))
            if done:
                self._finish(given)
                self._tell(what, connection, reason)
            return done

        if not self._state.attempt(self, give_up):
            self.lose(verbs.TAKEN)
        if self._state.lost is not None:
            raise self._state.lost

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise LeaseFromAnotherProcess(
                f"{self} belongs to process {self._pid}; this is process {os.getpid()}. "
                "Acquire after the fork, or hand it over: fence = lease.hand_over(..), pool.adopt(pk, fence)"
            )

    @property
    def _connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    def _finish(self, given: str) -> None:
        self._state.end(given)
        keeper.forget(self)

    def _tell(self, what: What, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if not self.model.is_told:
            return
        terms, at = self.terms, monotonic()
        if not (terms.is_recorded or SIGNALS[what].receivers):
            return
        begins = what is What.ACQUIRED
        seconds = None if begins else at - self.trust.granted_at
        ttl = terms.ttl if begins and terms.max_hold is None else None
        which = (self.model, self.using, self.pk, self.fence, self.holder)
        tell_heard(Fact(what, *which, reason, self.actor, seconds, ttl, at), terms.is_recorded, connection)
