"""The status of everything, as the dashboard and the commands show it, for callers with permission to view it."""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.locks.models import Barrier, ConditionWaiter, Lock as LockRow, RWLockPermit, SemaphorePermit
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.resources.registry import resource_models, select_resources
from resourcepool.resources.selectors import parse_key
from resourcepool.resources.state import State
from resourcepool.rest import serializers
from resourcepool.rest.refusals import NotFound, as_not_found, has_permission, pool_of, require
from resourcepool.rest.view import View
from resourcepool.status.alarm import Alarm
from resourcepool.status.alarms import alarms
from resourcepool.status.export import resource_records
from resourcepool.status.locks.lock_status import LockStatus, lock_named, locks
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_group, queue_groups
from resourcepool.status.queues.queues import QueueStatus, queues_of
from resourcepool.status.registry import named_systems, systems
from resourcepool.status.resources import why
from resourcepool.status.resources.holders import ActiveLease, active_leases, lease_counts
from resourcepool.status.resources.pools import PoolStatus, in_state, pools
from resourcepool.status.snapshots import as_data, fetch_all
from resourcepool.status.system import NamedSystem

LOCK_MODELS = (LockRow, SemaphorePermit, RWLockPermit, ConditionWaiter, Barrier)
# {path: system} of the systems with named rows.
NAMED_SYSTEMS = {system.name: system for system in named_systems().values()}


def statuses_of(kind: str) -> Any:
    """Return the type of a list of statuses of this system."""
    return get_type_hints(NAMED_SYSTEMS[kind].read)["return"]


class Pools(View):
    """``GET pools``: the pools that the caller may view."""

    responses = {200: {"pools": list[PoolStatus]}}

    def get(self, request: Request) -> Response:
        return Response(
            {
                "pools": as_data(
                    pools([model for model in resource_models() if has_permission(request, "view", model)])
                )
            }
        )


class PoolDetail(View):
    """``GET pools/<pool>``: the status of a pool."""

    responses = {200: PoolStatus}

    def get(self, request: Request, pool: str) -> Response:
        return Response(as_data(pools([pool_of(request, "view", pool)])[0]))


class Resources(View):
    """``GET pools/<pool>/resources``: resources by primary key; filters: ``after``, ``state``, ``tag``."""

    query_serializer = serializers.ResourceQuery
    responses = {200: {"resources": list[dict[str, Any]], "after": str}}

    def get(self, request: Request, pool: str) -> Response:
        model, query = pool_of(request, "view", pool), self.parameters
        limit, tags = limit_of(query), request.query_params.getlist("tag")
        rows = select_resources(model, criteria={"tags": tags} if tags else {})
        if "state" in query:
            rows = rows.filter(in_state(State(options.one_of("state", query["state"], State.values))))
        if "after" in query:
            try:
                rows = rows.filter(pk__gt=parse_key(model, query["after"]))
            except BadOption as error:
                raise error.of("after") from None
        pks = fetch_all(rows.order_by("pk").values_list("pk", flat=True)[: limit + 1])
        records = resource_records(rows.filter(pk__in=pks[:limit]))
        return Response(
            {"resources": as_data(list(records)), "after": str(pks[limit - 1]) if len(pks) > limit else ""}
        )


class ResourceDetail(View):
    """``GET pools/<pool>/resources/<id>``: its holder, since when, and why it can be leased or not."""

    responses = {200: why.ResourceExplanation}

    def get(self, request: Request, pool: str, pk: str) -> Response:
        model = pool_of(request, "view", pool)
        try:
            with as_not_found("id"):
                row = select_resources(model, [pk]).get()
            return Response(as_data(why.resource(row)))
        except model.DoesNotExist:
            raise NotFound("id", pk, because="it was just deleted") from None


class Leases(View):
    """``GET pools/<pool>/leases``: active leases, the next to expire first; filters: ``holder``, ``host``."""

    query_serializer = serializers.LeaseQuery
    responses = {200: {"leases": list[ActiveLease], "total": int}}

    def get(self, request: Request, pool: str) -> Response:
        model, query = pool_of(request, "view", pool), self.parameters
        whose = {name: query[name] for name in ("holder", "host") if name in query}
        total = lease_counts([model], **whose).get(model, 0)
        return Response(
            {"leases": as_data(active_leases(model, **whose, limit=limit_of(query))), "total": total}
        )


class SystemList(View):
    """``GET streams`` and similar: a page of statuses; filters: ``after``, ``status``, ``containing``."""

    kind = ""
    query_serializer = serializers.SystemQuery

    def get_responses(self) -> Mapping[int, Any]:
        return {200: {self.kind: statuses_of(self.kind), "after": str}}

    def get(self, request: Request) -> Response:
        system = NAMED_SYSTEMS[self.kind]
        require(request, "view", *system.viewed, *system.details)
        page = system.reader.page(**{**self.parameters, "limit": limit_of(self.parameters)})
        return Response({self.kind: as_data(page.statuses), "after": page.after})


class SystemDetail(View):
    """``GET streams/<name>`` and similar: the status of one, and why nothing happens there."""

    kind = ""

    def get_responses(self) -> Mapping[int, Any]:
        return {200: get_args(statuses_of(self.kind))[0]}

    def get(self, request: Request, name: str) -> Response:
        system = NAMED_SYSTEMS[self.kind]
        require(request, "view", *system.viewed, *system.details)
        with as_not_found(system.word):
            status = system.reader.named(name)[0]
        return Response(as_data(status))


class Locks(View):
    """``GET locks``: locks, semaphores, read-write locks, conditions and barriers by name."""

    query_serializer = serializers.LockQuery
    responses = {200: {"locks": list[LockStatus], "after": str}}

    def get(self, request: Request) -> Response:
        require(request, "view", *LOCK_MODELS)
        page = locks(**{**self.parameters, "limit": limit_of(self.parameters)})
        return Response({"locks": as_data(page.locks), "after": page.after})


class LockDetail(View):
    """``GET locks/<name>``: all kinds of this name, with holders and waiters."""

    query_serializer = serializers.LockDetailQuery
    responses = {200: {"locks": list[LockStatus]}}

    def get(self, request: Request, name: str) -> Response:
        require(request, "view", *LOCK_MODELS)
        return Response({"locks": as_data(lock_named(name, self.parameters.get("kind", "")))})


class QueueGroups(View):
    """``GET queues``: the first 200 queue groups, with their servers."""

    responses = {200: {"queue_groups": list[QueueGroupStatus]}}

    def get(self, request: Request) -> Response:
        require(request, "view", QueueGroup, Server)
        return Response({"queue_groups": as_data(queue_groups())})


class Queues(View):
    """``GET queues/<queue group>``: the queue group, and its first queues."""

    query_serializer = serializers.LimitQuery
    responses = {200: {"queue_group": QueueGroupStatus, "queues": list[QueueStatus]}}

    def get(self, request: Request, name: str) -> Response:
        require(request, "view", QueueGroup, Server, Queue)
        limit = limit_of(self.parameters)
        with as_not_found("queue_group"):
            group = queue_group(name)
        return Response({"queue_group": as_data(group), "queues": as_data(queues_of(group, limit=limit))})


class Alarms(View):
    """``GET alarms``: the current alarms, the worst first; needs permission to view everything."""

    responses = {200: {"alarms": list[Alarm]}}

    def get(self, request: Request) -> Response:
        read = [system for system in systems() if system.alarms or isinstance(system, NamedSystem)]
        models = [model for system in read for model in (*system.viewed, *system.details)]
        require(request, "view", *resource_models(), *models)
        return Response({"alarms": as_data(alarms())})


def limit_of(query: Mapping[str, str]) -> int:
    """Return the value of ``limit``; raises BadOption."""
    text = query.get("limit", str(serializers.MAX_LIMIT))
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    return options.whole("limit", int(text) if is_number else text, least=1, most=serializers.MAX_LIMIT)
