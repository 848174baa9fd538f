"""Leases for programs elsewhere: acquired, taken over by a repeated request, and found by their tokens."""

import contextlib
from collections.abc import Mapping
from typing import Any

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.threads.sync_async import run_sync
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.remote import Remote, Token, detach
from resourcepool.leases.request import Request as LeaseRequest
from resourcepool.leases.terms import Grant, Terms
from resourcepool.locks.models import Lock as LockRow
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.registry import parse_key
from resourcepool.rest.holder_names import HolderName
from resourcepool.rest.limits import Quota
from resourcepool.status.snapshots import as_data, fetch_all
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.lease import AwaitedLease, Source

MAX_LEASES_OF_REQUEST = 10


class RemoteResource(Remote, ResourceLease):
    """A lease of a resource that a program elsewhere holds."""


class RemoteLock(Remote, AwaitedLease):
    """A lock that a program elsewhere holds."""


def lease_for(source: Source, wanted: LeaseRequest, data: Mapping[str, Any], quota: Quota, **which: Any) -> Any:
    """Return a new lease or, with a ``request_id``, the one that the same request got before.

    Args:
        which: conditions on the row.

    Raises:
        AcquireTimeout: no matching row became free in time.
        BadOption: the same request was sent before with other parameters.
        TooManyLeases: the user has reached the limit.
    """
    before = take_over(source, wanted, which) if "request_id" in data else None
    if before is not None:
        return before
    quota.refuse_if_spent(source, with_this=False)
    lease = acquire_lease(source, wanted)
    try:
        quota.refuse_if_spent(source, with_this=True)
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
    is_recorded = model is not LockRow and model.pool.keeps_history
    terms = Terms(
        token.ttl,
        token.holder,
        cooldown=token.cooldown,
        max_hold=token.max_hold,
        is_recorded=is_recorded,
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
