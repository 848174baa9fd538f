"""Leases for programs in any language: acquire a resource or a lock, renew, release, quarantine."""

import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import connections, router
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.remote import Remote, Token, detach
from resourcepool.leases.terms import Grant, Terms
from resourcepool.locks.base import TTL
from resourcepool.locks.lock import Lock
from resourcepool.locks.models import Mutex
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.registry import key, resource_model
from resourcepool.resources.requests import RESERVED
from resourcepool.rest.view import View, body, caller, pool_of, require, user_name
from resourcepool.status.reading import as_data, fetched
from resourcepool.waiting.acquire import acquire
from resourcepool.waiting.lease import AwaitedLease
from resourcepool.waiting.request import Request as Wish
from resourcepool.waiting.request import Source, refuse_open_transaction

LONGEST_WAIT = 30.0  # seconds; web servers and proxies give up on longer answers
MOST_NAME = 80  # characters of a holder's name: with a request's id and a user's they fit in its column
MOST_ID = 64  # characters of a request's id
MOST_SAME = 10  # leases of one request
OF_POOLS = ("ttl", "priority", "strategy", "cooldown", "max_hold")
OF_ALL = ("timeout", "holder", "request_id")


class RemoteResource(Remote, ResourceLease):
    """A lease of a resource, held by a program elsewhere."""


class RemoteLock(Remote, AwaitedLease):
    """A lock, held by a program elsewhere."""


class Acquire(View):
    """``POST pools/<pool>/acquire``: the lease of one resource, and what its holder needs to use it."""

    def post(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "lease", pool)
        asked = body(request, [*OF_POOLS, *OF_ALL, "where"])
        chosen = {name: asked[name] for name in OF_POOLS if name in asked}
        own = {"timeout": timeout_of(asked), "holder": holder_of(request, asked, is_one_of_many=False)}
        wish = model.pool.request(1, {**selectors_of(asked), **chosen, **own})
        lease = lease_for(model.pool, wish, asked)
        try:
            resource = as_data(lease.resource.for_holder())
        except BaseException:
            lease.abandon()
            raise
        return Response({**detached(lease), "resource": resource}, 201)


class AcquireLock(View):
    """``POST locks/<name>/acquire``: a lock by its name, for one holder among all processes and programs."""

    def post(self, request: Request, name: str) -> Response:
        require(request, "lease", Mutex)
        asked = body(request, [*OF_ALL, "ttl"])
        lock = Lock(name, ttl=asked.get("ttl", TTL))
        terms = Terms(lock.ttl, holder_of(request, asked, is_one_of_many=True))
        wish = Wish(terms, timeout=timeout_of(asked), selector=lock.name)
        return Response(detached(lease_for(lock, wish, asked, pk=lock.name)), 201)


class LeaseView(View):
    """A view of what a holder does with its lease, which the body names by its token."""

    needs: tuple[str, ...] = ("lease",)

    def post(self, request: Request) -> Response:
        asked = body(request, (), self.needs)
        lease = of_token(Token.read(asked["lease"]))
        require(request, "lease", lease.model)
        return self.done(lease, asked)

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        raise NotImplementedError


class Renew(LeaseView):
    """``POST leases/renew``: for another ``ttl`` seconds."""

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.renew()
        return Response({"expires_in": as_data(lease.remaining)})


class Release(LeaseView):
    """``POST leases/release``: to the first in line, or free."""

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.release()
        return Response(status=204)


class Quarantine(LeaseView):
    """``POST leases/quarantine``: a resource that proved bad."""

    needs = ("lease", "reason")

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        if not isinstance(lease, ResourceLease):
            raise BadOption("lease", lease.pk, "of a resource, not of a lock")
        lease.quarantine(asked["reason"])
        return Response(status=204)


def selectors_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selectors of a body; raises BadOption for one that would be taken for an option."""
    found = asked.get("where", {})
    if not isinstance(found, dict):
        raise BadOption("where", found, 'an object, such as {"country": "US", "tags": ["fast"]}')
    for name in found:
        if name in RESERVED:
            raise BadOption("where", name, because="it is the name of an option, no field to select by")
    return found


def timeout_of(asked: Mapping[str, Any]) -> float:
    """Return how many seconds to wait; 0 unless the body says otherwise."""
    return options.seconds("timeout", asked.get("timeout", 0), most=LONGEST_WAIT)


def holder_of(request: Request, asked: Mapping[str, Any], *, is_one_of_many: bool) -> str:
    """Return the holder's name of a body, with its ``request_id``, or a number where none is given.

    Args:
        is_one_of_many: a name that was chosen gets a number, too: whoever holds one lock under it and waits for another
            would look like one that waits for itself.
    """
    # Without the address: sent again, a request may come by another one.
    default = user_name(request) if "request_id" in asked else caller(request)
    holder = options.text("holder", asked.get("holder", default), most=MOST_NAME)
    if "#" in holder:  # or somebody could name himself as the request of somebody else, and share its lease
        raise BadOption("holder", holder, because="# begins the id of a request: send that as request_id")
    if "request_id" in asked:
        request_id = options.text("request_id", asked["request_id"], most=MOST_ID)
        return f"{holder} #{request_id} of user {request.user.pk}"
    return f"{holder} #{secrets.token_hex(4)}" if is_one_of_many or "holder" not in asked else holder


def lease_for(source: Source, wish: Wish, asked: Mapping[str, Any], **which: Any) -> Any:
    """Return the lease that is wished for, or, with a ``request_id``, of what the same request got before.

    Args:
        which: the only rows that it can be.

    Raises:
        AcquireTimeout: it did not come free in time.
    """
    before = take_over(source, wish, which) if "request_id" in asked else None
    return acquired(source, wish) if before is None else before


def acquired(source: Source, wish: Wish) -> Any:
    """Return a new lease, which lasts for its whole ``ttl``; raises AcquireTimeout."""
    lease: Any = acquire(source, wish)[0]
    if lease.trust.lasts < wish.terms.ttl:  # handed over to a waiter: seconds, until it is renewed
        try:
            lease.renew()
        except LeaseLost as lost:
            raise AcquireTimeout(f"what came free was lost at once: {lost}") from None
        except BaseException:
            lease.abandon()
            raise
    return lease


def take_over(source: Source, wish: Wish, which: Mapping[str, Any]) -> Any:
    """Return a lease, under a new fence, of the first row that this holder has; None: it has none.

    Under the old fence the web server that was granted it may still give it back: it stood still while the request
    waited in line, or could not read the resource, or ends.
    """
    name, connection = wish.terms.holder, connections[source.using]
    refuse_open_transaction(connection, wish)
    rows = verbs.rows_of(connection, source.model).held_by(name).filter(**which).order_by("pk")
    for pk, fence, holder in fetched(rows.values_list("pk", "fence", "holder")[:MOST_SAME]):
        if holder != name:  # databases may take "A" for "a"
            continue
        sent_at = monotonic()
        before = remote(source.model, Grant(pk, fence, name, sent_at), wish)
        with contextlib.suppress(LeaseLost):
            grant = Grant(pk, before.hand_over(name), name, sent_at)
            return source.handle(source.using, grant, wish)
    return None


def remote(model: Any, grant: Grant, wish: Wish) -> Any:
    """Return the handle of a grant that a program elsewhere has."""
    if model is Mutex:
        return RemoteLock(model, router.db_for_write(model), grant, wish.terms)
    return RemoteResource(model.pool, model.pool.using, grant, wish)


def of_token(token: Token) -> Any:
    """Return the handle of the lease that a token is about; raises BadOption where there is no such pool any more."""
    model: Any = Mutex if token.model == Mutex._meta.label_lower else resource_model(token.model)
    is_recorded = model is not Mutex and model.pool.keeps_history
    terms = Terms(
        token.ttl, token.holder, cooldown=token.cooldown, max_hold=token.max_hold, is_recorded=is_recorded
    )
    return remote(model, token.grant(key(model, token.pk)), Wish(terms))


def detached(lease: Lease) -> dict[str, Any]:
    """Detach the lease; return what the caller is told of it."""
    return {
        "lease": detach(lease),
        "pool": lease.model._meta.label,
        "id": as_data(lease.pk),
        "fence": lease.fence,
        "holder": lease.holder,
        "ttl": lease.terms.ttl,
        "expires_in": as_data(lease.remaining),
    }
