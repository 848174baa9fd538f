"""Servers of a queue group for tests: real members of this process whose turns are taken by hand, and strangers."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect import DbLater, DbNow
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
TTL = 20.0  # seconds: on a loaded machine nobody is judged dead by accident
# The last one is the shortest that makes a difference.
SETTINGS = {
    "heartbeat_every": 0.1,
    "judge_dead_after": TTL,
    "reload_every": 0.02,
    "handover_timeout": TTL + MAX_COMMIT_DELAY,
}

has_a_server = pytest.mark.only("mysql", "postgresql")  # SQLite has none whose answers could be lost
# What to lose: on MariaDB the bare word is also in "set autocommit=0", with which a transaction begins.
COMMIT = {"mysql": "\x03COMMIT"}.get(connection.vendor, "COMMIT")
AWAY = {**LOST_CONNECTION, "sqlite": lambda: OperationalError("database is locked")}[connection.vendor]


def made(queues: int = 5, name: str = NAME, **settings: Any) -> QueueGroup:
    """Make a queue group with queues "1", "2", ..."""
    return administration.create(name, [str(n) for n in range(1, queues + 1)], **{**SETTINGS, **settings})


def kind(name: str = NAME) -> QueueGroup:
    """Return the queue group as it is now."""
    return QueueGroup.objects.get(name=name)


def joined(name: str, *, after: Membership | None = None, **more: Any) -> Membership:
    """Register a server of this process; it does nothing by itself, besides its heartbeat."""
    of = {"weight": 1, "labels": {}, "limit": None, **more}
    return Membership("default", kind(), ServerConfig(name=name, **of), lambda _: None, after)


def returned(lost: Membership) -> Membership:
    """Register a server of this process again, as one does that has lost its row, or may have."""
    return Membership("default", kind(), lost.next_config(), lambda _: None, lost)


def stranger(name: str, *, of: str = NAME, ttl: float = TTL, **more: Any) -> Server:
    """Register a server of another process, which will not do anything; it lives for a minute."""
    found: list[Server] = []

    def insert(queue_group: QueueGroup) -> None:
        row = {"queue_group": queue_group, "name": name, "ttl": ttl, "fence": 1, "holder": name, **more}
        moments = {"busy_before": DbLater(60), "registered_at": DbNow(), "idle_since": DbNow()}
        found.append(Server.objects.create(**row, **moments))

    reassignment.reassign("default", kind(of).pk, name, first=insert)
    return found[-1]


def replan(**more: Any) -> reassignment.Outcome:
    """Plan, as any server would."""
    return reassignment.reassign("default", kind().pk, "somebody", **more)


def left(*servers: Any) -> reassignment.Outcome:
    """Have strangers leave in good order."""
    return replan(leaving=[server.pk for server in servers])


def dies(server: Any) -> None:
    """Let a server be silent for too long, as the database sees it."""
    assert Server.objects.filter(pk=server.pk).update(busy_before=DbLater(-1)) == 1


def finds_itself_dead(member: Membership) -> None:
    """Let a member be judged dead, and find out by its next renewal."""
    dies(Server.objects.get(pk=member.lease.pk))
    member.lease.trust.due_at = 0.0
    member.turn()
    assert not member.lease.is_held


def has_rested() -> None:
    """Let a heartbeat pass, as the database sees it, for what a plan has left."""
    QueueGroup.objects.exclude(rests_until=None).update(rests_until=DbLater(-1))


def asked_ago(queue_id: str, seconds: float) -> None:
    """Let a queue that is asked for have been asked for so long ago."""
    assert queue(queue_id).requested_at is not None
    change(queue(queue_id), requested_at=DbLater(-seconds))


def queue(queue_id: str) -> Queue:
    return Queue.objects.get(queue_group__name=NAME, queue_id=queue_id)


def lock(other: BaseDatabaseWrapper, queue_id: str) -> None:
    """Keep a queue's row locked until ``other`` rolls back, as somebody's ``guard`` does."""
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("UPDATE resourcepool_queue SET fence = fence WHERE queue_id = %s", [queue_id])


def table() -> str:
    """Return who has each queue, in order, and after ">" who has asked for it; "-": nobody."""
    names = {None: "-", **dict(Server.objects.values_list("pk", "name"))}
    rows = Queue.objects.filter(queue_group__name=NAME).order_by("pk").values_list("cur_server", "req_server")
    return " ".join(
        names.get(cur, "?") + (f">{names.get(req, '?')}" if req is not None else "") for cur, req in rows
    )


def moves(*what: str) -> list[str]:
    """Return the history, oldest first: "what queue from>to: reason"."""
    rows = Move.objects.order_by("pk").filter(**({"what__in": what} if what else {}))
    return [f"{one.what} {one.queue_id} {one.from_server}>{one.to_server}: {one.reason}" for one in rows]


def handles(member: Membership) -> dict[str, HeldQueue]:
    """Return what this member has, by the queues' ids."""
    return {one.queue_id: one for one in member.held if one.is_held}


def one(**settings: Any) -> tuple[Membership, HeldQueue]:
    """Let A have the only queue."""
    made(1, **settings)
    a = joined("A")
    a.turn()
    return a, handles(a)["1"]


def ask(a: Membership) -> Server:
    """Have B ask for everything that A has; A does not know yet."""
    b = stranger("B")
    administration.drain(NAME, str(a))
    return b


def take_away(a: Membership) -> Server:
    """Have B take A's queue over; A does not know yet."""
    b = ask(a)
    asked_ago("1", 31)
    replan(if_due=True)
    assert table() == "B"
    return b


def has(server: QueueServer, count: int) -> None:
    """Wait until it has so many queues, and can rely on them."""
    eventually(lambda: len(server.held) == count, 20, table)


def asked_by_b(**settings: Any) -> tuple[Server, Server]:
    """Let A have the only queue and drain, and B ask for it."""
    made(1, **settings)
    a = stranger("A")
    b = stranger("B")
    Server.objects.filter(pk=a.pk).update(state=Server.State.DRAINING)
    replan()
    assert table() == "A>B"
    return a, b
