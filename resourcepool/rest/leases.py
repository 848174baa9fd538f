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
from resourcepool.locks.models import Lock as LockRow
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.request_builder import RESERVED_NAMES
from resourcepool.rest.access import caller, pool_named, pool_of, require
from resourcepool.rest.grants import detach_and_describe, lease_for, lease_of_token
from resourcepool.rest.holder_names import holder_name, user_suffix
from resourcepool.rest.limits import apply_limits, quota
from resourcepool.rest.view import ActionView, View
from resourcepool.rest.wait_slots import wait_slot
from resourcepool.status.snapshots import as_data
from resourcepool.waiting.request import Request as LeaseRequest

MAX_UNREADABLE = 5  # resources whose secret nobody can read, in one request
MAX_TIMEOUT = 25.0  # seconds; web servers and proxies give up on an answer after 30
POOL_OPTIONS = ("ttl", "priority", "strategy", "cooldown", "max_hold")
COMMON_OPTIONS = ("timeout", "holder", "request_id")


class Acquire(View):
    """``POST pools/<pool>/acquire``: the lease of one resource, and what its holder needs to use it."""

    optional_fields = (*POOL_OPTIONS, *COMMON_OPTIONS, "where")
    responses = {201: "Lease"}

    def post(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "lease", pool)
        asked = self.read_body()
        chosen = {name: asked[name] for name in POOL_OPTIONS if name in asked}
        own = {"timeout": timeout_of(asked), "holder": holder_name(request, asked, is_one_of_many=False)}
        wanted = apply_limits(model, model.pool.request(1, {**selectors_of(asked), **chosen, **own}), asked)
        wanted = dataclasses.replace(wanted, terms=dataclasses.replace(wanted.terms, actor=caller(request)))
        unreadable = 0
        while True:
            with wait_slot(request, wanted) as may:
                lease = lease_for(model.pool, may, asked, quota(model, user_suffix(request)))
            try:
                resource = as_data(lease.resource.for_holder())
            except BaseException as error:
                is_put_away = isinstance(error, SecretUnreadable) and lease.quarantine_if_unreadable(error)
                unreadable += 1
                if not is_put_away or unreadable == MAX_UNREADABLE:
                    lease.release_quietly()
                    raise
            else:
                return Response({**detach_and_describe(lease), "resource": resource}, 201)


class AcquireLock(ActionView):
    """``POST locks/<name>/acquire``: a lock by its name, for one holder among all processes and programs."""

    optional_fields = (*COMMON_OPTIONS, "ttl")
    responses = {201: "Lease"}

    def post(self, request: Request, name: str) -> Response:
        require(request, "lease", LockRow)
        asked = self.read_body()
        lock = Lock(name, ttl=asked.get("ttl", TTL))
        terms = Terms(lock.ttl, holder_name(request, asked, is_one_of_many=True))
        wanted = apply_limits(
            LockRow, LeaseRequest(terms, timeout=timeout_of(asked), selector=lock.name), asked
        )
        with wait_slot(request, wanted) as may:
            lease = lease_for(lock, may, asked, quota(LockRow, user_suffix(request)), pk=lock.name)
        return Response(detach_and_describe(lease), 201)


class LeaseView(View):
    """A view of what a holder does with its lease, which the body names by its token."""

    required_fields: tuple[str, ...] = ("lease",)

    def post(self, request: Request) -> Response:
        asked = self.read_body()
        token = Token.read(asked["lease"])
        is_lock = token.model == LockRow._meta.label_lower
        model = LockRow if is_lock else pool_named(request, "lease", token.model)
        require(request, "lease", model)
        return self.done(lease_of_token(token, model, caller(request)), asked)

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        raise NotImplementedError


class Renew(LeaseView):
    """``POST leases/renew``: for another ``ttl`` seconds."""

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.renew()
        return Response({"expires_in": as_data(lease.remaining)})


class Release(LeaseView):
    """``POST leases/release``: to the first in line, or free."""

    responses = {204: ""}

    def done(self, lease: Any, asked: Mapping[str, Any]) -> Response:
        lease.release()
        return Response(status=204)


class Quarantine(LeaseView):
    """``POST leases/quarantine``: a resource that proved bad. Who may do this may put a whole pool away."""

    required_fields = ("lease", "reason")
    responses = {204: ""}

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
        if name in RESERVED_NAMES:
            raise BadOption("where", name, because="it is the name of an option, no field to select by")
    return found


def timeout_of(asked: Mapping[str, Any]) -> float:
    """Return how many seconds to wait; 0 unless the body says otherwise."""
    return options.seconds("timeout", asked.get("timeout", 0), most=MAX_TIMEOUT)
