"""Leases for programs elsewhere: acquired, taken over by a repeated request, and found by their tokens.

Such a program has a token instead of a handle. It is signed, so it cannot be forged; any program that has it acts for
the holder.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.retry import retrying
from resourcepool.db.sync_async import run_sync
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, Hidden, LeaseLost
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Ending, Grant, Request as LeaseRequest, Terms, Trust
from resourcepool.locks.lockable import LockLease
from resourcepool.locks.models import Lock as LockRow
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.selectors import parse_key
from resourcepool.rest.limits import HolderName, refuse_if_spent
from resourcepool.signals import EventKind, is_recorded
from resourcepool.status.snapshots import as_data, fetch_all
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.source import Source

MAX_LEASES_OF_REQUEST = 10
SALT = "resourcepool.lease"
MAX_TOKEN_LENGTH = 10_000  # names of 200 characters, escaped with 12 letters each, plus a third for base64


@dataclass(frozen=True)
class Token:
    """The content of a token: a grant and its options.

    Attributes:
        model: "app.model".
        pk: the primary key, as text.
        granted_at: seconds since 1970, by the granting web server's clock: for ``max_hold`` and the history.
        ttl, cooldown, max_hold: the options it was acquired with, in seconds.
    """

    model: str
    pk: str
    fence: int
    holder: str
    granted_at: float
    ttl: float
    cooldown: float
    max_hold: float | None

    def signed(self) -> str:
        """Return the token as text, signed with SECRET_KEY."""
        return signing.dumps(list(vars(self).values()), salt=SALT)

    @classmethod
    def read(cls, text: object) -> "Token":
        """Return the token in a ``signed`` text; raises BadOption, without the text."""
        try:
            if isinstance(text, str) and len(text) <= MAX_TOKEN_LENGTH:
                return cls(*signing.loads(text, salt=SALT))
        except (signing.BadSignature, TypeError, ValueError):  # ValueError: half a surrogate pair
            pass
        raise BadOption("lease", Hidden(), "the text under that name in the answer to acquire")

    def grant(self, pk: Any) -> Grant:
        """Return the grant of this token; ``pk``: its primary key as the model's type."""
        return Grant(pk, self.fence, self.holder, monotonic() - max(0.0, time.time() - self.granted_at))


def detach(lease: Lease) -> str:
    """Detach a lease that this process has just acquired for another program; return its token.

    This process no longer renews or releases it, not even at exit. Do not use the handle afterwards.

    Raises:
        DatabaseUnavailable: this process is exiting, and may be releasing it.
    """
    keeper.remove(lease)
    if shutdown.has_begun():
        lease._release_quietly()
        raise DatabaseUnavailable("this web server is shutting down; send the request again")
    granted_at, terms = time.time() - (monotonic() - lease._trust.granted_at), lease._terms
    spans = terms.ttl, terms.cooldown, terms.max_hold
    which = lease.model._meta.label_lower, str(lease.pk), lease.fence, lease.holder
    return Token(*which, granted_at, *spans).signed()


class Remote(Lease):
    """Mixin for a lease of another program, for one request.

    No thread watches it here, so the row alone decides whether it is still held.
    """

    def ensure_held(self) -> None:
        """Raise LeaseLost if it was held for ``max_hold`` seconds, or has ended in this call."""
        now = monotonic()
        if not self._state.has_ended and self._trust.next_ttl(now) <= 0.0:
            self._lose(self._trust.end_reason(now))
        self._state.raise_if_ended(self)

    def _lose(self, reason: str, trust: Trust | None = None) -> None:
        """Mark it as lost for this request, without an event: the program may have released it before."""
        why = f"it was released before, {reason}" if reason == verbs.TAKEN else reason
        self._state.end(lost=LeaseLost(f"{self} of {self.holder} has ended: {why}"))

    def _give_up(self, *how: Any) -> Any:
        """Refuse an expired lease first: the statement that ends a lease matches only its fence, even after the ttl."""
        row = verbs.rows_of(self._connection, self.model).filter(pk=self.pk, fence=self.fence)
        with statement_timeout():
            if retrying(self._connection, row.expired().exists):
                self._lose(sentence_for("not_renewed_in_ttl", seconds=self._terms.ttl))
                self._state.raise_if_ended(self)
        return super()._give_up(*how)

    def _take(self, grant: Grant, connection: BaseDatabaseWrapper) -> None:
        self.pk, self.fence, self.holder = grant.pk, grant.fence, grant.holder
        self._transaction = None
        self._pid = os.getpid()
        self._trust = Trust(self._terms, grant.sent_at, is_proven=True)
        self._state = Ending()

    def _emit(self, kind: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if kind is not EventKind.ACQUIRED:  # emitted when it was granted
            super()._emit(kind, connection, reason)


class RemoteResource(Remote, ResourceLease):
    """A lease of a resource that a program elsewhere holds."""


class RemoteLock(Remote, LockLease):
    """A lock that a program elsewhere holds."""


def lease_for(source: Source, wanted: LeaseRequest, data: Mapping[str, Any], user: str, **which: Any) -> Any:
    """Return a new lease or, with a ``request_id``, the one that the same request got before.

    Args:
        user: the suffix of the holder's names of this user.
        which: conditions on the row.

    Raises:
        AcquireTimeout: no matching row became free in time.
        BadOption: the same request was sent before with other parameters.
        TooManyLeases: the user has reached the limit.
    """
    before = take_over(source, wanted, which) if "request_id" in data else None
    if before is not None:
        return before
    refuse_if_spent(source, user, with_this=False)
    lease = acquire_lease(source, wanted)
    try:
        refuse_if_spent(source, user, with_this=True)
    except BaseException:
        lease._release_quietly()
        raise
    return lease


def acquire_lease(source: Source, wanted: LeaseRequest) -> Any:
    """Return a new lease for its whole ``ttl``; raises AcquireTimeout."""
    lease: Any = run_sync(acquire, source, wanted)[0]
    if lease._trust.valid_for < wanted.terms.ttl:  # a lease handed over to a waiter first lasts only seconds
        try:
            lease.renew()
        except LeaseLost as lost:
            raise AcquireTimeout(f"the lease was lost at once: {lost}") from None
        except BaseException:
            lease._release_quietly()
            raise
    return lease


def take_over(source: Source, wanted: LeaseRequest, which: Mapping[str, Any]) -> Any:
    """Return a lease, with a new fence, of the first row that this holder has; None if it has none.

    The new fence keeps the web server of the first request from releasing the lease, as it may if it was paused,
    fails to read the resource, or shuts down.
    """
    name, connection = wanted.terms.holder, connections[source.using]
    refuse_open_transaction(connection, is_allowed=wanted.allow_in_transaction)
    for pk, fence, holder in fetch_all(
        same_request(connection, source, name).filter(**which)[:MAX_LEASES_OF_REQUEST]
    ):
        refuse_other(HolderName.read(holder), HolderName.read(name))
        if holder != name:  # a database may compare without case
            continue
        sent_at = monotonic()
        before = remote(source.model, Grant(pk, fence, name, sent_at), wanted)
        with contextlib.suppress(LeaseLost):
            grant = Grant(pk, before.hand_over(name), name, sent_at)
            return source.handle(source.using, grant, wanted)
    return None


def same_request(connection: BaseDatabaseWrapper, source: Source, name: str) -> Any:
    """Return a superset of the rows held by the user's request in this holder's name, with any parameters."""
    own: Any = HolderName.read(name)
    rows = verbs.rows_of(connection, source.model).held().order_by("pk")
    same = rows.filter(holder__contains=f" #{own.request_id} ~", holder__endswith=own.user)
    return same.values_list("pk", "fence", "holder")


def refuse_other(before: HolderName | None, now: HolderName | None) -> None:
    """Raise BadOption for a repeated request whose parameters differ from the first one's."""
    if before and now and before.is_same_request(now) and (names := now.differing(before)):
        why = f"already used with another {' and another '.join(names)}; use a new id for a new request"
        raise BadOption("request_id", now.request_id, because=why)


def remote(model: Any, grant: Grant, wanted: LeaseRequest) -> Any:
    """Return the handle of a lease that a program elsewhere holds."""
    if model is LockRow:
        return RemoteLock(model, router.db_for_write(model), grant, wanted.terms)
    return RemoteResource(model.pool, model.pool.using, grant, wanted)


def lease_of_token(token: Token, model: Any, actor: str) -> Any:
    """Return the handle of a token's lease of this model; ``actor``: the caller, for the history."""
    terms = Terms(
        token.ttl,
        token.holder,
        cooldown=token.cooldown,
        max_hold=token.max_hold,
        is_recorded=is_recorded(model),
        actor=actor,
    )
    return remote(model, token.grant(parse_key(model, token.pk)), LeaseRequest(terms))


def detach_and_describe(lease: Lease) -> dict[str, Any]:
    """Detach the lease; return its fields in the response."""
    return {
        "lease": detach(lease),
        "pool": lease.model._meta.label,
        "id": as_data(lease.pk),
        "fence": lease.fence,
        "holder": lease.holder,
        "ttl": lease._terms.ttl,
        "expires_in": as_data(lease.remaining),
    }
