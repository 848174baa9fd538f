"""Leases for programs in any language: acquire a resource or a lock, renew, release, quarantine."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.exceptions import BadOption, SecretUnreadable
from resourcepool.leases.terms import Request as LeaseRequest, Terms
from resourcepool.locks.base import TTL
from resourcepool.locks.lock import Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.requests import RESERVED_NAMES
from resourcepool.rest import serializers
from resourcepool.rest.grants import Token, detach_and_describe, lease_for, lease_of_token
from resourcepool.rest.limits import apply_limits, holder_name, user_suffix, wait_slot
from resourcepool.rest.refusals import caller, pool_named, pool_of, require
from resourcepool.rest.view import ActionView, View
from resourcepool.signals import is_recorded
from resourcepool.status.snapshots import as_data

MAX_UNREADABLE = 5  # resources with an undecryptable secret that one request skips


class Acquire(View):
    """``POST pools/<pool>/acquire``: lease a resource; the answer has the token, and the secrets to use it."""

    request_serializer = serializers.AcquireRequest
    responses = {201: serializers.Lease}

    def post(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "lease", pool)
        data = self.read_body()
        chosen = {name: data[name] for name in serializers.PoolOptions.names() if name in data}
        own = {"timeout": timeout_of(data), "holder": holder_name(request, data, is_one_of_many=False)}
        wanted = apply_limits(model, model.pool.request(1, {**selectors_of(data), **chosen, **own}), data)
        wanted = dataclasses.replace(wanted, terms=dataclasses.replace(wanted.terms, actor=caller(request)))
        unreadable = 0
        while True:
            with wait_slot(request, wanted) as allowed:
                lease = lease_for(model.pool, allowed, data, user_suffix(request))
            try:
                resource = as_data(lease.resource.for_holder())
            except BaseException as error:
                is_put_away = isinstance(error, SecretUnreadable) and lease._quarantine_if_unreadable(error)
                unreadable += 1
                if not is_put_away or unreadable == MAX_UNREADABLE:
                    lease._release_quietly()
                    raise
            else:
                return Response({**detach_and_describe(lease), "resource": resource}, 201)


class AcquireLock(ActionView):
    """``POST locks/<name>/acquire``: acquire a lock."""

    request_serializer = serializers.AcquireLockRequest
    responses = {201: serializers.Lease}

    def post(self, request: Request, name: str) -> Response:
        require(request, "lease", LockRow)
        data = self.read_body()
        lock = Lock(name, ttl=data.get("ttl", TTL))
        holder = holder_name(request, data, is_one_of_many=True)
        terms = Terms(lock.ttl, holder, is_recorded=is_recorded(LockRow))
        wanted = apply_limits(LockRow, LeaseRequest(terms, timeout=timeout_of(data), selector=lock.name), data)
        with wait_slot(request, wanted) as allowed:
            lease = lease_for(lock, allowed, data, user_suffix(request), pk=lock.name)
        return Response(detach_and_describe(lease), 201)


class LeaseView(View):
    """A view that changes the lease of the token in the body."""

    request_serializer = serializers.TokenRequest

    def post(self, request: Request) -> Response:
        data = self.read_body()
        token = Token.read(data["lease"])
        is_lock = token.model == LockRow._meta.label_lower
        model = LockRow if is_lock else pool_named(request, "lease", token.model)
        require(request, "lease", model)
        return self.change(lease_of_token(token, model, caller(request)), data)

    def change(self, lease: Any, data: Mapping[str, Any]) -> Response:
        raise NotImplementedError


class Renew(LeaseView):
    """``POST leases/renew``: renew a lease for another ``ttl`` seconds."""

    responses = {200: {"expires_in": float}}

    def change(self, lease: Any, data: Mapping[str, Any]) -> Response:
        lease.renew()
        return Response({"expires_in": as_data(lease.remaining)})


class Release(LeaseView):
    """``POST leases/release``: release a lease; the first waiter gets the resource, if any."""

    responses = {204: None}

    def change(self, lease: Any, data: Mapping[str, Any]) -> Response:
        lease.release()
        return Response(status=204)


class Quarantine(LeaseView):
    """``POST leases/quarantine``: release a faulty resource into quarantine."""

    request_serializer = serializers.QuarantineRequest
    responses = {204: None}

    def change(self, lease: Any, data: Mapping[str, Any]) -> Response:
        if not isinstance(lease, ResourceLease):
            raise BadOption("lease", lease.pk, "of a resource, not of a lock")
        require(self.request, "quarantine", lease.model)
        lease.quarantine(data["reason"])
        return Response(status=204)


def selectors_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selectors of a body; raises BadOption for one with the name of an option."""
    where = data.get("where", {})
    if not isinstance(where, dict):
        raise BadOption("where", where, 'an object, such as {"country": "US", "tags": ["fast"]}')
    for name in where:
        if name in RESERVED_NAMES:
            raise BadOption("where", name, because="this is an option, not a field to select by")
    return where


def timeout_of(data: Mapping[str, Any]) -> float:
    """Return the seconds to wait; default: 0."""
    return options.seconds("timeout", data.get("timeout", 0), most=serializers.MAX_TIMEOUT)
