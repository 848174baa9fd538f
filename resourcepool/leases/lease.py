"""The handle of one grant, which a holder keeps, checks and releases."""

import contextlib
import logging
import os
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import OpenTransaction, guard_transaction
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import (
    DatabaseUnavailable,
    LeaseFromAnotherProcess,
    LeaseLost,
)
from resourcepool.leases import verbs
from resourcepool.leases.base_lease import BaseLease
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL
from resourcepool.options import Seconds
from resourcepool.signals import EventKind

logger = logging.getLogger(__name__)


class _Itself(property):
    """``__enter__`` in C that returns the handle: no bytecode in which a signal handler could lose the lease.

    ``ExitStack`` calls it as a function.
    """

    def __call__(self, lease: "Lease") -> "Lease":
        return lease


class Lease(BaseLease):
    """One row, held by this process until it is released, lost, or not renewed for ``ttl`` seconds.

    The keeper renews it in the background. The handle trusts itself until a margin before ``ttl`` has passed
    since its last confirmed renewal was *sent*; then ``lost`` is set, ``on_lost`` runs, and every further
    call raises ``LeaseLost``.

    Not promised: that a holder stops in time without checking (``ensure_held``, ``guard``). Only ``guard``, or a
    service that checks ``fence``, excludes a late write.

    Usable from any thread of the process that acquired it; as a context manager it releases at the end.
    The theory: docs/explanation/how-it-works.md.
    """

    @property
    def is_held(self) -> bool:
        """Whether this process still holds the lease. No I/O."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds until the lease must be renewed to stay held; 0 when it is not held."""
        is_over = self._state.may_have_ended or self._pid != os.getpid()
        return 0.0 if is_over else max(0.0, self._trust.until - monotonic())

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

    def release(self) -> None:
        """Release the lease; its row becomes free after ``cooldown`` seconds.

        After an error it is still renewed, and can be released again.

        Raises:
            LeaseReleased: it was released before.
            LeaseLost: it was lost before; a new holder is not affected.
        """
        self._check_process()
        if self._state.outcome:
            self._state.raise_if_ended(self)
        # Also if it counts as lost here: the fence decides, and a row that is still ours becomes free sooner.
        self._give_up(EventKind.RELEASED, "released", self._send_release)

    def _release_or_expire(self) -> None:
        """Release the lease, or let it expire if the database does not confirm that.

        Raises:
            LeaseReleased, LeaseLost: see ``release``.
            DatabaseUnavailable: it expires.
        """
        self._stop_renewing()  # before the statement, because no code releases it after an interruption
        self.release()

    def _release_or_log(self) -> None:
        """``_release_or_expire`` that logs failures; raises only exceptions of a signal handler."""
        try:
            self._release_or_expire()
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except DatabaseUnavailable as error:
            logger.warning("could not release %s; it will expire: %s", self, error)

    def _release_quietly(self) -> None:
        """``_release_or_expire`` that never raises, for callers with a more important exception of their own."""
        try:
            self._release_or_log()
        except Exception:
            logger.exception("could not release %s; it will expire", self)

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

        fence = 0

        def hand_over(connection: BaseDatabaseWrapper) -> int:
            nonlocal fence
            fence = verbs.hand_over(connection, self.model, self.pk, self.fence, to=to, ttl=span)
            return fence

        self._give_up(EventKind.HANDED_OVER, f"handed over to {to}", hand_over, f"to {to}")
        return fence

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

    if TYPE_CHECKING:

        def __enter__(self) -> Self: ...
    else:
        __enter__ = _Itself(weakref.ref)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.outcome:
            return
        if error is None:
            self._release_or_expire()
        else:
            self._release_quietly()  # the caller's exception matters more

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.model._meta.label} {self.pk} fence={self.fence} {state}>"

    # The rest is private

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        row = (connection, self.model, self.pk, self.fence)
        return verbs.release(*row, self._terms.cooldown, trusted_until=self._trust.until)

    def _renew(self) -> None:
        # The trust of this grant: another thread's ``fix()`` may move the handle to another row meanwhile.
        sent_at, trust = monotonic(), self._trust
        self._transaction = OpenTransaction(self._connection) if self._connection.atomic_blocks else None
        held = [(self.pk, self.fence)]
        with statement_timeout():
            is_held = verbs.renew(self._connection, self.model, held, trust.next_ttl(sent_at))
        if not is_held:
            self._lose(verbs.TAKEN, trust)
            self.ensure_held()
        if self._transaction is not None:  # a rollback would undo it
            transaction.on_commit(partial(trust.confirm, sent_at), using=self.using)
        elif self._connection.autocommit:  # otherwise Django does not see the commit
            trust.confirm(sent_at)

    def _give_up(
        self, kind: EventKind, outcome: str, send: Callable[[BaseDatabaseWrapper], object], reason: str = ""
    ) -> None:
        """End the grant by ``send``, which returns whether it was still ours; after an error it has not ended."""

        def give_up() -> bool:
            connection = self._connection
            with statement_timeout():
                done = bool(send(connection))
            if done:
                self._finish(outcome)
                self._emit(kind, connection, reason)
            return done

        if not self._state.attempt(self, give_up):
            self._lose(verbs.TAKEN)
        if self._state.lost is not None:
            raise self._state.lost.again()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise LeaseFromAnotherProcess(
                f"{self} belongs to process {self._pid}; this is process {os.getpid()}. "
                "Acquire after the fork, or hand it over: fence = lease.hand_over(..), pool.adopt(pk, fence)"
            )
