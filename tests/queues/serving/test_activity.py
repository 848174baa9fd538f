"""A server's heartbeat continues when its code has ended or hangs; its row has the last activity."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F

from resourcepool.models import QueueGroup, Server
from resourcepool.queues import HeldQueue, QueueServer
from resourcepool.queues.serving.held_queue import WorkSlot
from resourcepool.queues.serving.membership import Membership
from resourcepool.status.alarm import AlarmKind
from resourcepool.status.queues.queue_groups import ServerStatus, queue_group
from resourcepool.status.queues.system import queue_alarms
from tests.committed import Clock, Statement
from tests.eventually import InBackground, eventually
from tests.queues.conftest import Serve
from tests.queues.members import (
    NAME,
    expire,
    handles,
    rejoin,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")

HEARTBEAT = 4.0  # seconds


def seen(member: Membership) -> ServerStatus:
    """Return its status as others see it, once it has had time to report."""
    (found,) = [one for one in queue_group(NAME).servers if one.pk == member.lease.pk]
    return found


def passes(clock: Clock, member: Membership, seconds: float) -> None:
    """Let time pass with heartbeats only."""
    for _ in range(4):
        clock.advance(seconds / 4)
        member.turn()


class TestItsServerTells:
    def test_when_it_last_began_work(self, process_clock: Clock) -> None:
        a, hand = served(), WorkSlot(is_loop=True)
        passes(process_clock, a, 40)
        assert a.begin(handles(a)["1"], hand)
        passes(process_clock, a, 12)
        assert (seen(a).last_activity, seen(a).in_hand) == (about(3, 12), 1)
        passes(process_clock, a, 12)
        a.finish(handles(a)["1"], hand)
        passes(process_clock, a, 12)
        assert (seen(a).last_activity, seen(a).in_hand) == (about(24, 36), 0)

    def test_nothing_while_it_begins_work_only_when_there_is_some(self, process_clock: Clock) -> None:
        a = served()
        with handles(a)["1"].working():
            passes(process_clock, a, 16)
            assert (seen(a).last_activity, seen(a).in_hand) == (about(4, 16), 1)
        passes(process_clock, a, 40)
        assert (seen(a).last_activity, seen(a).in_hand) == (None, 0)

    def test_in_one_statement_every_few_heartbeats_and_only_what_is_news(
        self, process_clock: Clock, statements: list[Statement]
    ) -> None:
        a = served()
        passes(process_clock, a, 16)
        statements.clear()
        passes(process_clock, a, 16)
        assert told(statements) == 0
        for _ in range(6):
            a.activity.touch(process_clock(), is_loop=True)
            passes(
                process_clock, a, HEARTBEAT / 8
            )  # of 12 s in which it reports once; a slow machine adds to them
        assert told(statements) == 1

    def test_the_same_after_it_was_judged_dead(self, process_clock: Clock) -> None:
        a = served()
        passes(process_clock, a, 40)
        expire(Server.objects.get(pk=a.lease.pk))
        a.lease._lose("a test cut it off")
        again = rejoin(a)
        again.turn()
        assert seen(again).last_activity == about(40, 41)


class TestALoop:
    """In a server with its own threads."""

    @pytest.mark.parametrize("idle", [False, True], ids=["with work", "with nothing to do"])
    def test_that_goes_on_is_no_trouble(self, serve: Serve, idle: bool) -> None:
        server, loop = served_by(serve, lambda each: each.skip_for(60) if idle else None)
        first = last_activity_at(server)
        eventually(lambda: last_activity_at(server) > first, 20)
        server.stop()
        loop.result()

    def test_that_died_is_an_alarm_though_the_heartbeat_goes_on(self, serve: Serve) -> None:
        def fail(_: HeldQueue) -> None:
            raise ZeroDivisionError

        server, loop = served_by(serve, fail)
        with pytest.raises(ZeroDivisionError):
            loop.result()
        eventually(lambda: alarm() is not None, 20)
        assert f"server {server.name} has queues (2), but its code has not asked for work for " in str(alarm())
        assert server.is_registered
        for _ in server.queues():  # work continues
            break
        eventually(lambda: alarm() is None, 20)


def test_a_loop_with_nothing_to_do_asks_with_every_heartbeat_as_it_is_set_by_now(serve: Serve) -> None:
    server = serve("A", 1, heartbeat_every=9.0)
    QueueGroup.objects.update(heartbeat_every=0.1, generation=F("generation") + 1)
    membership = server._known
    membership.turn()
    assert membership.heartbeat == 0.1


def served() -> Membership:
    return sole_server(2, heartbeat_every=HEARTBEAT)


def served_by(serve: Serve, work: Callable[[HeldQueue], Any]) -> tuple[QueueServer, InBackground]:
    """Let a loop in a thread do this work on two queues."""
    server = serve("A", 2)

    def loop() -> None:
        while not server.stopping:
            for each in server.queues():
                work(each)

    return server, InBackground(loop)


def last_activity_at(server: QueueServer) -> Any:
    return Server.objects.get(pk=server.name.partition("#")[2]).last_activity_at


def alarm() -> str | None:
    return next((one.text for one in queue_alarms([queue_group(NAME)]) if one.kind is AlarmKind.STALLED), None)


def about(least: float, most: float) -> Any:
    """Return a matcher for seconds between these, as the database's clock moves on."""
    return pytest.approx((least + most) / 2, abs=(most - least) / 2 + 1)


def told(statements: list[Statement]) -> int:
    return len([one for one in statements if one.sql.startswith("UPDATE") and "last_activity_at" in one.sql])
