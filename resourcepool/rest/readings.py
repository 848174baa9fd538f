"""How everything stands, page by page: what the dashboard and the commands show, for whoever may view it."""

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.elections.models import Leadership
from resourcepool.exceptions import BadOption
from resourcepool.locks.channels.models import Broadcast, Subscription
from resourcepool.locks.models import Mutex, Notification, RWLockPermit, SemaphorePermit
from resourcepool.queues.models import Queue, Server, TaskType
from resourcepool.resources.registry import chosen, key, resource_models
from resourcepool.resources.state import State
from resourcepool.rest.access import may, pool_of, require
from resourcepool.rest.errors import NotFound, in_address
from resourcepool.rest.view import View
from resourcepool.status import why
from resourcepool.status.alarms import alarms
from resourcepool.status.channels import CHANNELS
from resourcepool.status.elections import ELECTIONS
from resourcepool.status.export.records import of_resources
from resourcepool.status.holders import counts, holdings
from resourcepool.status.locks.names import lock_named, locks
from resourcepool.status.pools import in_state, pools
from resourcepool.status.queues.queues import queues_of
from resourcepool.status.queues.task_types import task_type, task_types
from resourcepool.status.reading import as_data, fetched
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.places import Places
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import TOPICS
from resourcepool.taskqueue.dispenser.models import Dispenser, DispenserTask
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import Timer, Topic

MOST = 200  # on a page
OF_LOCKS = (Mutex, SemaphorePermit, RWLockPermit, Notification)
# What is known by name: how it is read, and what one must be able to view for it.
PLACES: Mapping[str, tuple[Places, tuple[Any, ...]]] = {
    "streams": (STREAMS, (Stream, Task)),
    "dispensers": (DISPENSERS, (Dispenser, DispenserTask)),
    "topics": (TOPICS, (Topic, Timer)),
    "channels": (CHANNELS, (Broadcast, Subscription)),
    "elections": (ELECTIONS, (Leadership,)),
}


class Pools(View):
    """``GET pools``: the pools that the caller may view."""

    def get(self, request: Request) -> Response:
        return Response(
            {"pools": as_data(pools([one for one in resource_models() if may(request, "view", one)]))}
        )


class PoolNamed(View):
    """``GET pools/<pool>``: how one pool stands."""

    def get(self, request: Request, pool: str) -> Response:
        return Response(as_data(pools([pool_of(request, "view", pool)])[0]))


class Resources(View):
    """``GET pools/<pool>/resources``: by primary key, those ``after`` one; of one ``state``, with all ``tag``."""

    query = ("after", "limit", "state", "tag")

    def get(self, request: Request, pool: str) -> Response:
        model, query = pool_of(request, "view", pool), self.asked
        limit, tags = limit_of(query), request.query_params.getlist("tag")
        rows = chosen(model, wishes={"tags": tags} if tags else {})
        if "state" in query:
            rows = rows.filter(in_state(State(options.one_of("state", query["state"], State.values))))
        if "after" in query:
            try:
                rows = rows.filter(pk__gt=key(model, query["after"]))
            except BadOption as error:
                raise error.of("after") from None
        pks = fetched(rows.order_by("pk").values_list("pk", flat=True)[: limit + 1])
        found = of_resources(rows.filter(pk__in=pks[:limit]))
        return Response({"resources": as_data(list(found)), "after": next_page(pks, limit)})


class ResourceOf(View):
    """``GET pools/<pool>/resources/<id>``: who has it, since when, and why it is free or not."""

    def get(self, request: Request, pool: str, pk: str) -> Response:
        model = pool_of(request, "view", pool)
        try:
            with in_address("id"):
                row = chosen(model, [pk]).get()
            return Response(as_data(why.resource(row)))
        except model.DoesNotExist:
            raise NotFound("id", pk, because="it has just been deleted") from None


class Leases(View):
    """``GET pools/<pool>/leases``: the next to expire first; of one ``holder`` or ``host``."""

    query = ("limit", "holder", "host")

    def get(self, request: Request, pool: str) -> Response:
        model, query = pool_of(request, "view", pool), self.asked
        whose = {name: query[name] for name in ("holder", "host") if name in query}
        total = counts([model], **whose).get(model, 0)
        return Response({"leases": as_data(holdings(model, **whose, limit=limit_of(query))), "total": total})


class PlacesListed(View):
    """``GET streams`` and the like: a page, ``after`` a name, of one ``standing``, ``containing`` a text."""

    kind = ""

    query = ("after", "limit", "standing", "containing")

    def get(self, request: Request) -> Response:
        places, needed = PLACES[self.kind]
        require(request, "view", *needed)
        page = places.page(**{**self.asked, "limit": limit_of(self.asked)})
        return Response({self.kind: as_data(page.found), "after": page.after})


class PlaceNamed(View):
    """``GET streams/<name>`` and the like: how one stands, and why nothing happens there."""

    kind = ""

    def get(self, request: Request, name: str) -> Response:
        places, needed = PLACES[self.kind]
        require(request, "view", *needed)
        with in_address(places.word):
            found = places.named(name)[0]
        return Response(as_data(found))


class Locks(View):
    """``GET locks``: locks, semaphores, read-write locks, conditions and barriers, by name, those ``after`` one."""

    query = ("after", "limit", "kind", "prefix")

    def get(self, request: Request) -> Response:
        require(request, "view", *OF_LOCKS)
        page = locks(**{**self.asked, "limit": limit_of(self.asked)})
        return Response({"locks": as_data(page.locks), "after": page.after})


class LocksNamed(View):
    """``GET locks/<name>``: all kinds of this name, with their holders and their lines."""

    query = ("kind",)

    def get(self, request: Request, name: str) -> Response:
        require(request, "view", *OF_LOCKS)
        return Response({"locks": as_data(lock_named(name, self.asked.get("kind", "")))})


class TaskTypes(View):
    """``GET queues``: the first 200 task types, with their servers."""

    def get(self, request: Request) -> Response:
        require(request, "view", TaskType, Server)
        return Response({"task_types": as_data(task_types())})


class Queues(View):
    """``GET queues/<task type>``: the task type, and its first queues."""

    query = ("limit",)

    def get(self, request: Request, name: str) -> Response:
        require(request, "view", TaskType, Server, Queue)
        limit = limit_of(self.asked)
        with in_address("task_type"):
            found = task_type(name)
        return Response({"task_type": as_data(found), "queues": as_data(queues_of(found, limit=limit))})


class Alarms(View):
    """``GET alarms``: what is wrong now, the worst first; for who may view everything."""

    def get(self, request: Request) -> Response:
        systems = [model for _places, models in PLACES.values() for model in models]
        require(request, "view", *resource_models(), *systems, *OF_LOCKS, TaskType, Server, Queue)
        return Response({"alarms": as_data(alarms())})


def limit_of(query: Mapping[str, str]) -> int:
    """Return how many to show; raises BadOption."""
    text = query.get("limit", str(MOST))
    is_number = text.isascii() and text.isdecimal() and len(text) < 9
    return options.whole("limit", int(text) if is_number else text, least=1, most=MOST)


def next_page(keys: Sequence[Any], limit: int) -> str:
    """Return the ``after`` of the next page, given the keys of this one and one more; "": this is the last."""
    return str(keys[limit - 1]) if len(keys) > limit else ""
