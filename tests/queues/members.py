"""Servers for tests: members in this process, whose turns the test takes, and strangers, which do nothing."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import QueueServer, administration, reassignment
from resourcepool.queues.planning.changes import MAX_COMMIT_DELAY
from resourcepool.queues.serving.held_queue import HeldQueue
from resourcepool.queues.serving.membership import Membership
from resourcepool.queues.serving.registration import ServerConfig
from tests.app.rows import change
from tests.eventually import eventually
from tests.resources.clients import LOST_CONNECTION

NAME = "orders"
TTL = 20.0  # seconds: long enough that no server is presumed dead by accident on a loaded machine
# `handover_timeout` is the shortest that has an effect.
SETTINGS = {
    "heartbeat_every": 0.1,
    "judge_dead_after": TTL,
    "reload_every": 0.02,
    "handover_timeout": TTL + MAX_COMMIT_DELAY,
}

has_a_server = pytest.mark.only("mysql", "postgresql")  # SQLite has none whose answers could be lost
# On MariaDB the bare word is also in "set autocommit=0", with which a transaction begins.
COMMIT = {"mysql": "\x03COMMIT"}.get(connection.vendor, "COMMIT")
AWAY = {**LOST_CONNECTION, "sqlite": lambda: OperationalError("database is locked")}[connection.vendor]


def create_queue_group(queues: int = 5, name: str = NAME, **settings: Any) -> QueueGroup:
    """Make a queue group with queues "1", "2", ..."""
    return administration.create(name, [str(n) for n in range(1, queues + 1)], **{**SETTINGS, **settings})


def read_queue_group(name: str = NAME) -> QueueGroup:
    """Return the queue group as it is now."""
    return QueueGroup.objects.get(name=name)


def join(name: str, *, after: Membership | None = None, **more: Any) -> Membership:
    """Register a server of this process, which has no thread."""
    of = {"weight": 1, "labels": {}, "limit": None, **more}
    return Membership("default", read_queue_group(), ServerConfig(name=name, **of), lambda _: None, after)


def rejoin(lost: Membership) -> Membership:
    """Register a lost server of this process again."""
    return Membership("default", read_queue_group(), lost.next_config(), lambda _: None, lost)


def foreign_server(name: str, *, of: str = NAME, ttl: float = TTL, **more: Any) -> Server:
    """Register a server of another process, which does nothing and lives for a minute."""
    found: list[Server] = []

    def insert(queue_group: QueueGroup) -> None:
        row = {"queue_group": queue_group, "name": name, "ttl": ttl, "fence": 1, "holder": name, **more}
        moments = {"busy_before": DbLater(60), "registered_at": DbNow(), "idle_since": DbNow()}
        found.append(Server.objects.create(**row, **moments))

    reassignment.reassign("default", read_queue_group(of).pk, name, first=insert)
    return found[-1]


def replan(**more: Any) -> reassignment.Outcome:
    """Plan, as any server would."""
    return reassignment.reassign("default", read_queue_group().pk, "somebody", **more)


def leave(*servers: Any) -> reassignment.Outcome:
    """Let strangers leave in an orderly way."""
    return replan(leaving=[server.pk for server in servers])


def expire(server: Any) -> None:
    """Let the heartbeat of a server be overdue, by the database's clock."""
    assert Server.objects.filter(pk=server.pk).update(busy_before=DbLater(-1)) == 1


def notice_expiry(member: Membership) -> None:
    """Let a member be presumed dead, and notice that with its next renewal."""
    expire(Server.objects.get(pk=member.lease.pk))
    member.lease._trust.due_at = 0.0
    member.turn()
    assert not member.lease.is_held


def end_postponement() -> None:
    """End the delay after which a postponed plan is due."""
    QueueGroup.objects.exclude(rests_until=None).update(rests_until=DbLater(-1))


def requested_ago(queue_id: str, seconds: float) -> None:
    """Backdate the request of a queue by ``seconds``."""
    assert queue(queue_id).requested_at is not None
    change(queue(queue_id), requested_at=DbLater(-seconds))


def queue(queue_id: str) -> Queue:
    return Queue.objects.get(queue_group__name=NAME, queue_id=queue_id)


def lock(other: BaseDatabaseWrapper, queue_id: str) -> None:
    """Keep a queue's row locked until ``other`` rolls back, as a ``guard`` does."""
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("UPDATE resourcepool_queue SET fence = fence WHERE queue_id = %s", [queue_id])


def owners() -> str:
    """Return the owner of each queue, in order, and after ">" its requester; "-": none."""
    names = {None: "-", **dict(Server.objects.values_list("pk", "name"))}
    rows = Queue.objects.filter(queue_group__name=NAME).order_by("pk").values_list("cur_server", "req_server")
    return " ".join(
        names.get(cur, "?") + (f">{names.get(req, '?')}" if req is not None else "") for cur, req in rows
    )


def moves(*what: str) -> list[str]:
    """Return the moves, oldest first: "action queue from>to: reason"."""
    rows = Move.objects.order_by("pk").filter(**({"what__in": what} if what else {}))
    return [f"{one.what} {one.queue_id} {one.from_server}>{one.to_server}: {one.reason}" for one in rows]


def handles(member: Membership) -> dict[str, HeldQueue]:
    """Return the handles of this member by id."""
    return {one.queue_id: one for one in member.held if one.is_held}


def sole_server(queues: int, **settings: Any) -> Membership:
    """Let A have all of so many queues."""
    create_queue_group(queues, **settings)
    a = join("A")
    a.turn()
    return a


def single_queue(**settings: Any) -> tuple[Membership, HeldQueue]:
    """Let A have the only queue."""
    a = sole_server(1, **settings)
    return a, handles(a)["1"]


def request_all(a: Membership) -> Server:
    """Let B request all queues of A, which does not know yet."""
    b = foreign_server("B")
    administration.drain(NAME, str(a))
    return b


def take_over(a: Membership) -> Server:
    """Let B take over A's queue; A does not know yet."""
    b = request_all(a)
    requested_ago("1", 31)
    replan(if_due=True)
    assert owners() == "B"
    return b


def wait_for_queues(server: QueueServer, count: int) -> None:
    """Wait until it has ``count`` queues, and can rely on them."""
    eventually(lambda: len(server.held) == count, 20, owners)


def requested_by_b(**settings: Any) -> tuple[Server, Server]:
    """Let A have the only queue and drain, and B request it."""
    create_queue_group(1, **settings)
    a = foreign_server("A")
    b = foreign_server("B")
    Server.objects.filter(pk=a.pk).update(state=Server.State.DRAINING)
    replan()
    assert owners() == "A>B"
    return a, b
