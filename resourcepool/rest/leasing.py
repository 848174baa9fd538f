"""Leases for programs in any language: acquire a resource or a lock, renew, release, quarantine."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.exceptions import BadOption, SecretUnreadable
from resourcepool.leases.remote import Token
from resourcepool.leases.terms import Terms
from resourcepool.locks.base import TTL
from resourcepool.locks.lock import Lock
from resourcepool.locks.models import Mutex
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.requests import RESERVED
from resourcepool.rest.access import caller, pool_named, pool_of, require
from resourcepool.rest.grants import detached, lease_for, of_token
from resourcepool.rest.limits import limited, quota
from resourcepool.rest.names import holder_of, of_user
from resourcepool.rest.view import Act, View
from resourcepool.rest.waits import waiting
from resourcepool.status.reading import as_data
from resourcepool.waiting.request import Request as Wish

MOST_UNREADABLE = 5  # resources whose secret nobody can read, in one request
LONGEST_WAIT = 25.0  # seconds; web servers and proxies give up on an answer after 30
OF_POOLS = ("ttl", "priority", "strategy", "cooldown", "max_hold")
OF_ALL = ("timeout", "holder", "request_id")


class Acquire(View):
    """``POST pools/<pool>/acquire``: the lease of one resource, and what its holder needs to use it."""

    takes = (*OF_POOLS, *OF_ALL, "where")
    answers = {201: "Lease"}

    def post(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "lease", pool)
        asked = self.sent()
        chosen = {name: asked[name] for name in OF_POOLS if name in asked}
        own = {"timeout": timeout_of(asked), "holder": holder_of(request, asked, is_one_of_many=False)}
        wish = limited(model, model.pool.request(1, {**selectors_of(asked), **chosen, **own}), asked)
        wish = dataclasses.replace(wish, terms=dataclasses.replace(wish.terms, actor=caller(request)))
        unreadable = 0
        while True:
            with waiting(request, wish) as may:
                lease = lease_for(model.pool, may, asked, quota(model, of_user(request)))
            try:
                resource = as_data(lease.resource.for_holder())
            except BaseException as error:
                is_put_away = isinstance(error, SecretUnreadable) and lease.put_away(error)
                unreadable += 1
                if not is_put_away or unreadable == MOST_UNREADABLE:
                    lease.abandon()
                    raise
            else:
                return Response({**detached(lease), "resource": resource}, 201)


class AcquireLock(Act):
    """``POST locks/<name>/acquire``: a lock by its name, for one holder among all processes and programs."""

    takes = (*OF_ALL, "ttl")
    answers = {201: "Lease"}

    def post(self, request: Request, name: str) -> Response:
        require(request, "lease", Mutex)
        asked = self.sent()
        lock = Lock(name, ttl=asked.get("ttl", TTL))
        terms = Terms(lock.ttl, holder_of(request, asked, is_one_of_many=True))
        wish = limited(Mutex, Wish(terms, timeout=timeout_of(asked), selector=lock.name), asked)
        with waiting(request, wish) as may:
            lease = lease_for(lock, may, asked, quota(Mutex, of_user(request)), pk=lock.name)
        return Response(detached(lease), 201)


class LeaseView(View):
    """A view of what a holder does with its lease, which the body names by its token."""

    needs: tuple[str, ...] = ("lease",)

    def post(self, request: Request) -> Response:
        asked = self.sent()
        token = Token.read(asked["lease"])
        is_lock = token.model == Mutex._meta.label_lower
        model = Mutex if is_lock else pool_named(request, "lease", token.model)
        require(request, "lease", model)
        return self.done(of_token(token, model, caller(request)), asked)

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        raise NotImplementedError


class Renew(LeaseView):
    """``POST leases/renew``: for another ``ttl`` seconds."""

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.renew()
        return Response({"expires_in": as_data(lease.remaining)})


class Release(LeaseView):
    """``POST leases/release``: to the first in line, or free."""

    answers = {204: ""}

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.release()
        return Response(status=204)


class Quarantine(LeaseView):
    """``POST leases/quarantine``: a resource that proved bad. Who may do this may put a whole pool away."""

    needs = ("lease", "reason")
    answers = {204: ""}

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        if not isinstance(lease, ResourceLease):
            raise BadOption("lease", lease.pk, "of a resource, not of a lock")
        require(self.request, "quarantine", lease.model)
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
