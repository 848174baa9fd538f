"""Leases for programs in any language: acquire a resource or a lock, renew, release, quarantine."""

import secrets
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
from resourcepool.rest.access import caller, pool_of, require, user_name
from resourcepool.rest.grants import detached, lease_for, of_token
from resourcepool.rest.view import View
from resourcepool.status.reading import as_data
from resourcepool.waiting.request import Request as Wish

LONGEST_WAIT = 25.0  # seconds; web servers and proxies give up on an answer after 30
MOST_NAME = 80  # characters of a holder's name: with a request's id and a user's they fit in its column
MOST_ID = 64  # characters of a request's id
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
        wish = model.pool.request(1, {**selectors_of(asked), **chosen, **own})
        while True:
            lease = lease_for(model.pool, wish, asked)
            try:
                resource = as_data(lease.resource.for_holder())
            except BaseException as error:
                if not (isinstance(error, SecretUnreadable) and lease.put_away(error)):
                    lease.abandon()
                    raise
            else:
                return Response({**detached(lease), "resource": resource}, 201)


class AcquireLock(View):
    """``POST locks/<name>/acquire``: a lock by its name, for one holder among all processes and programs."""

    takes = (*OF_ALL, "ttl")
    answers = {201: "Lease"}

    def post(self, request: Request, name: str) -> Response:
        require(request, "lease", Mutex)
        asked = self.sent()
        lock = Lock(name, ttl=asked.get("ttl", TTL))
        terms = Terms(lock.ttl, holder_of(request, asked, is_one_of_many=True))
        wish = Wish(terms, timeout=timeout_of(asked), selector=lock.name)
        return Response(detached(lease_for(lock, wish, asked, pk=lock.name)), 201)


class LeaseView(View):
    """A view of what a holder does with its lease, which the body names by its token."""

    needs: tuple[str, ...] = ("lease",)

    def post(self, request: Request) -> Response:
        asked = self.sent()
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

    answers = {204: ""}

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.release()
        return Response(status=204)


class Quarantine(LeaseView):
    """``POST leases/quarantine``: a resource that proved bad."""

    needs = ("lease", "reason")
    answers = {204: ""}

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
