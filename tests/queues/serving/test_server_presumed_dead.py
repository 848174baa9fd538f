"""A server that was presumed dead, or whose queue group was deleted."""

import signal
import threading
import time

import pytest

from resourcepool.db import background
from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import LeaseLost, QueueBusy
from resourcepool.leases.keeper import keeper
from resourcepool.models import Queue, QueueGroup, Server
from resourcepool.queues import HeldQueue, QueueServer, administration
from tests.committed import Statement
from tests.eventually import eventually
from tests.queues.conftest import Serve
from tests.queues.members import (
    NAME,
    create_queue_group,
    expire,
    foreign_server,
    leave,
    owners,
    replan,
    wait_for_queues,
)
from tests.spawned import Spawner

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestBeingJudgedDead:
    def test_is_mended_by_registering_again(self, serve: Serve) -> None:
        server = serve("A", 2)
        before, name = server.held, server.name
        expire(Server.objects.get())
        eventually(lambda: all(each.lost.is_set() for each in before))
        wait_for_queues(server, 2)
        assert all(now.fence > then.fence for now, then in zip(server.held, before, strict=True))
        assert server.name != name
        assert Server.objects.count() == 1

    def test_by_itself_registers_again_only_when_its_old_row_counts_no_more(self, serve: Serve) -> None:
        """Until then the others share with one server too many, and each such move is undone a moment later."""
        server = serve("A", 2)
        name = server.name
        (lease,) = keeper.leases()
        with (
            background.background_paused()
        ):  # a renewal that is just being sent would make the row count for longer
            Server.objects.update(busy_before=DbLater(1))
            lease._lose("a test gave it up")
        eventually(lambda: server.name != name, 20)
        assert [str(one) for one in Server.objects.all()] == [server.name]

    def test_while_it_drains_does_not_bring_it_queues_again(self, serve: Serve) -> None:
        server = serve("A", 2)
        foreign_server("B")
        administration.drain(NAME, "A")
        eventually(lambda: owners() == "B B", 20, owners)
        wait_for_queues(server, 0)
        name = server.name
        expire(Server.objects.get(name="A"))
        eventually(lambda: server.is_registered and server.name != name, 20)
        assert str(Server.objects.get(name="A", state=Server.State.DRAINING)) == server.name
        assert owners() == "B B"

    def test_does_not_let_old_and_new_work_on_a_queue_run_at_once(self, serve: Serve) -> None:
        server = serve("A", 1)
        loop = server.queues()
        old = next(loop)
        expire(Server.objects.get())
        eventually(lambda: server.held and server.held[0] is not old, 20)
        assert list(server.queues()) == []
        with pytest.raises(QueueBusy), server.held[0].working():
            pass
        loop.close()
        assert [each.fence > old.fence for each in server.queues()] == [True]

    def test_happens_to_a_process_that_was_stopped_for_too_long_which_then_joins_again(
        self, spawn: Spawner
    ) -> None:
        create_queue_group(2, judge_dead_after=1.5, handover_timeout=30)
        child = spawn(serve_stopped_once)
        child.line("told: has 2")
        b = foreign_server("B")
        child.line("told: has 1")
        eventually(lambda: replan(if_due=True) and owners() == "B B", 20)
        child.send(signal.SIGCONT)
        child.line("told: lost")
        leave(b)
        child.line("told: has 2")
        assert owners() == "A A"
        child.send(signal.SIGTERM)
        child.succeed()
        assert owners() == "- -"


def serve_stopped_once() -> None:
    with QueueServer(NAME, name="A") as server:
        server.stop_on_signals()
        said(server, 2)
        mine = said(server, 1)
        with (
            background.background_paused()
        ):  # not in the middle of a transaction, as on SQLite no other connection could write
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        with pytest.raises(LeaseLost):
            mine.ensure_held()
        eventually(mine.lost.is_set)
        print("told: lost", flush=True)
        said(server, 2)
        while not server.stopping:
            list(server.queues())


def said(server: QueueServer, count: int) -> HeldQueue:
    wait_for_queues(server, count)
    print(f"told: has {count}", flush=True)  # the log says that a server "has 2 queues"
    return server.held[0]


class TestAQueueGroupThatIsDeleted:
    def test_under_a_running_server_is_told_in_the_log_and_waited_for(
        self, serve: Serve, caplog: pytest.LogCaptureFixture, statements: list[Statement]
    ) -> None:
        server = serve("A", 2)
        before = server.held
        began = time.monotonic()
        Queue.objects.all().delete()
        Server.objects.all().delete()
        QueueGroup.objects.all().delete()
        eventually(lambda: not server.is_registered)
        eventually(lambda: "retrying" in caplog.text)
        assert all(not each.is_held for each in before)
        statements.clear()
        eventually(lambda: len(of(statements, "resourcepool-queues")) >= 4, 20)
        assert len(of(statements, "resourcepool-queues")) <= 10 * (time.monotonic() - began)
        told = [message for message in caplog.messages if "retrying" in message]
        assert len(told) == len(set(told)) <= 2  # its row may go before its queue group, or seem to
        create_queue_group(2)
        wait_for_queues(server, 2)

    def test_does_not_keep_a_server_from_closing(self, serve: Serve) -> None:
        server = serve("A", 2)
        Queue.objects.all().delete()
        Server.objects.all().delete()
        QueueGroup.objects.all().delete()
        server.close()
        assert not server.is_registered


def of(statements: list[Statement], thread: str) -> list[str]:
    return [one.sql for one in statements if one.thread == thread]
