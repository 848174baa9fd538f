"""The handle of one grant: what a holder keeps, checks and gives back."""

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
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import guard_transaction, set_idle_timeout
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import (
    DatabaseUnavailable,
    LeaseFromAnotherProcess,
    LeaseLost,
)
from resourcepool.leases import verbs
from resourcepool.leases.base_lease import BaseLease
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL
from resourcepool.signals import EventKind

logger = logging.getLogger(__name__)


class _Itself(property):
    """``__enter__`` that returns the handle.

    In a ``with`` statement it runs no Python code of ours, before which a signal could be handled: a caller of
    ``with pool.acquire()`` is in the block, or has not been given anything. ``ExitStack`` calls it.
    """

    def __call__(self, lease: "Lease") -> "Lease":
        return lease


class Lease(BaseLease):
    """One row, held by this process until it is released, lost, or not renewed for ``ttl`` seconds.

    The keeper renews it in the background. The handle trusts itself until a margin before ``ttl`` has passed
    since its last confirmed renewal was *sent*; then ``lost`` is set, ``on_lost`` runs, and every further
    call raises ``LeaseLost``.

    Not promised: that a holder which does not check (``ensure_held``, ``guard``) stops in time. Only ``guard``
    and a far end that checks ``fence`` exclude a late write.

    Usable from any thread of the process that acquired it; as a context manager it releases at the end.
    The theory: docs/how-it-works.md. Requirements R0.2, R0.5 and R0.6: docs/origins.md.
    """

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
        self._state.raise_if_ended(self)

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
            self._state.raise_if_ended(self)
        # Also when it counts as lost here: the fence decides, and a row that is still ours is freed sooner.
        self._give_up(EventKind.RELEASED, "released", self._send_release)

    def release_or_expire(self) -> None:
        """Release for good: if the database does not confirm it, the lease is not renewed any more and expires.

        Raises:
            LeaseReleased, LeaseLost: see ``release``.
            DatabaseUnavailable: it expires.
        """
        self.stop_renewing()  # before the statement: after an interruption nobody would give it back later
        self.release()

    def release_or_log(self) -> None:
        """Give back without telling whether that succeeded; raises nothing but what a signal handler raises."""
        try:
            self.release_or_expire()
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except DatabaseUnavailable as error:
            logger.warning("could not release %s; it lapses by itself: %s", self, error)

    def release_quietly(self) -> None:
        """Give back without raising, for callers with a more important error of their own."""
        try:
            self.release_or_log()
        except Exception:
            logger.exception("could not release %s; it lapses by itself", self)

    def hand_over(self, to: str, *, ttl: object = None) -> int:
        """Pass the row straight to a successor, who takes it up with ``pool.adopt(pk, fence)``.

        In a transaction it counts when that is committed, so tell the successor only then.

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

        Renews the lease inside that transaction. From then on the row is locked, so nobody can take it over
        before the commit. Keep the transaction shorter than half the ttl: the keeper cannot renew meanwhile, and a
        session that is silent in it for a ttl (5 s at least) is ended by the server (docs/databases.md).

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
        if self._state.given:
            return
        if error is None:
            self.release_or_expire()
        else:
            self.release_quietly()  # the caller's own error matters more

    def __repr__(self) -> str:
        state = "held" if self.is_held else "ended"
        return f"<{type(self).__name__} {self.model._meta.label} {self.pk} fence={self.fence} {state}>"

    # The rest is private

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        row = (connection, self.model, self.pk, self.fence)
        return verbs.release(*row, self.terms.cooldown, trusted_until=self.trust.until)

    def _renew(self) -> None:
        # Of this grant: another thread may ``fix()`` the handle meanwhile, which then has another row.
        sent_at, trust = monotonic(), self.trust
        self._transaction = self._opened(self._connection) if self._connection.atomic_blocks else None
        held = [(self.pk, self.fence)]
        with statement_timeout():
            is_held = verbs.renew(self._connection, self.model, held, trust.next_ttl(sent_at))
        if not is_held:
            self.lose(verbs.TAKEN, trust)
            self.ensure_held()
        if self._transaction is not None:  # it counts once the transaction is committed: a rollback undoes it
            transaction.on_commit(partial(trust.confirm, sent_at), using=self.using)
        elif self._connection.autocommit:  # otherwise its commit is not noticed
            trust.confirm(sent_at)

    def _give_up(
        self, what: EventKind, given: str, send: Callable[[BaseDatabaseWrapper], object], reason: str = ""
    ) -> None:
        """End the grant by ``send``, which returns whether it was still ours; if it fails, nothing has ended."""

        def give_up() -> bool:
            connection = self._connection
            with statement_timeout():
                if connection.atomic_blocks:
                    set_idle_timeout(connection, self.terms.ttl)
                done = bool(send(connection))
            if done:
                self._finish(given)
                self._emit(what, connection, reason)
            return done

        if not self._state.attempt(self, give_up):
            self.lose(verbs.TAKEN)
        if self._state.lost is not None:
            raise self._state.lost.again()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise LeaseFromAnotherProcess(
                f"{self} belongs to process {self._pid}; this is process {os.getpid()}. "
                "Acquire after the fork, or hand it over: fence = lease.hand_over(..), pool.adopt(pk, fence)"
            )
