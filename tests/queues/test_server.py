"""A server with its threads: what a program sees of it, from the start to the end."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, ClaimInTransaction, LeaseFromAnotherProcess, LeaseLost
from resourcepool.leases import background
from resourcepool.models import Queue, Server, TaskType
from resourcepool.queues import HeldQueue, QueueServer, operating
from tests.aliases import alias
from tests.committed import Statement
from tests.eventually import InBackground, eventually, in_threads
from tests.queues.conftest import Serve
from tests.queues.crew import NAME, asked_ago, dies, left, made, queue, replan, stranger, table
from tests.spawned import Spawner

pytestmark = pytest.mark.usefixtures("transactional_db")


def has(server: QueueServer, count: int) -> None:
    """Wait until it has so many queues, and can rely on them."""
    eventually(lambda: len(server.held) == count, 20, table)


class TestDescribing:
    @pytest.mark.parametrize(
        "wrong",
        [
            *({"weight": weight} for weight in (0, -1, 1_001, 1.5, True, "2", None)),
            *({"limit": limit} for limit in (0, -1, 1.5, "many")),
            *({"labels": labels} for labels in ([1], "eu", {"zone": 1}, {"": "eu"}, {"zone": ""}, {"z": "\n"})),
            {"labels": {str(n): "x" for n in range(21)}},
            *({"name": name} for name in ("", "n" * 101, "a\nb", 7)),
        ],
        ids=str,
    )
    def test_refuses_what_is_not_allowed(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadOption, match=next(iter(wrong))):
            QueueServer(NAME, **wrong)

    def test_of_an_unknown_task_type_names_those_that_exist(self) -> None:
        made(1, name="orders")
        made(1, name="mails")
        with pytest.raises(BadOption, match=r"one of mails, orders; `manage.py resourcepool_queues add"):
            QueueServer("order").start()

    def test_of_an_unknown_task_type_says_so_when_there_is_none(self) -> None:
        with pytest.raises(BadOption, match="there is none yet"):
            QueueServer("orders").start()

    def test_of_one_that_was_not_started_says_how(self) -> None:
        with pytest.raises(BadOption, match=r"start\(\) it first"):
            next(QueueServer(NAME).queues())


class TestRegistering:
    def test_inside_a_transaction_is_refused(self) -> None:
        made(1)
        with pytest.raises(ClaimInTransaction), transaction.atomic():
            QueueServer(NAME).start()

    def test_goes_to_the_database_of_the_task_types_wherever_leases_are_routed(self, serve: Serve) -> None:
        made(2)
        with alias("elsewhere"):
            server = serve()
            has(server, 2)
            with transaction.atomic(), server.held[0].guard():
                pass
            server.close()
        assert table() == "- -"

    def test_a_second_time_after_the_end_is_refused(self, serve: Serve) -> None:
        made(1)
        server = serve()
        server.close()
        server.close()
        with pytest.raises(BadOption, match="a new QueueServer"):
            server.start()
        assert Server.objects.count() == 0


class TestSharing:
    def test_begins_with_everything_at_the_first_and_is_even_with_the_others(self, serve: Serve) -> None:
        made(9)
        one = serve("A")
        has(one, 9)
        two = serve("A")  # of the same name: a server of its own
        has(one, 5)
        has(two, 4)
        three = serve("B", weight=7)
        has(three, 7)
        has(one, 1)
        has(two, 1)
        three.close()
        eventually(lambda: len(one.held) + len(two.held) == 9, 20)

    def test_a_queue_only_yielded_is_not_handed_over_until_the_next_is_asked_for(self, serve: Serve) -> None:
        made(2)
        server = serve("A")
        has(server, 2)
        loop = server.queues()
        first, second = next(loop), server.held[1]
        stranger("B")
        operating.drain(NAME, "A")
        eventually(second.lost.is_set)
        eventually(lambda: first.is_asked_for)
        assert table() == "A>B B"
        assert not list(loop)
        eventually(first.lost.is_set)
        assert table() == "B B"

    def test_a_queue_taken_over_from_it_is_lost_to_its_work(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        with pytest.raises(LeaseLost), server.held[0].working() as work:
            stranger("B")
            operating.drain(NAME, "A")
            asked_ago("1", 31)
            replan(if_due=True)
            eventually(work.lost.is_set)
        assert table() == "B"


class TestTheLoop:
    def test_gives_no_queue_to_two_threads_at_once(self, serve: Serve) -> None:
        made(6)
        server = serve("A")
        has(server, 6)
        busy, done, doubles = set[str](), Counter[str](), list[str]()
        lock = threading.Lock()

        def work() -> None:
            while done.total() < 300:
                for each in server.queues():
                    with lock:
                        doubles.extend({each.queue_id} & busy)
                        busy.add(each.queue_id)
                    os.sched_yield()
                    with lock:
                        busy.discard(each.queue_id)
                        done[each.queue_id] += 1

        in_threads([work] * 4)
        assert not doubles
        assert set(done) == set("123456")

    def test_gives_the_queue_back_when_it_is_left(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        for each in server.queues():
            assert each.is_in_hand
            break
        assert not server.held[0].is_in_hand
        with pytest.raises(ZeroDivisionError):
            for _ in server.queues():
                raise ZeroDivisionError
        assert not server.held[0].is_in_hand

    @pytest.mark.parametrize("why", ["it is paused", "all is in hand", "all is asked for", "it has none"])
    def test_waits_when_there_is_nothing_to_do(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, why: str
    ) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        mine = server.held[0]
        stranger("B")
        with contextlib.ExitStack() as stack:
            if why == "it is paused":
                operating.pause(NAME)
                eventually(lambda: mine.should_stop)
            elif why == "it has none":
                operating.drain(NAME, "A")
                eventually(mine.lost.is_set)
            else:
                stack.enter_context(mine.working())
            if why == "all is asked for":
                operating.drain(NAME, "A")
                eventually(lambda: mine.is_asked_for)
            waits: list[float] = []
            monkeypatch.setattr(server, "wait", waits.append)
            assert list(server.queues()) == []
            assert len(waits) == 1

    def test_goes_on_after_a_pause(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        operating.pause(NAME)
        eventually(lambda: server.held and server.held[0].should_stop)
        assert not list(server.queues())
        operating.resume(NAME)
        assert eventually(lambda: list(server.queues()))


class TestStopping:
    def test_from_a_signal_ends_the_loop(self, serve: Serve) -> None:
        made(3)
        server = serve("A")
        before = signal.getsignal(signal.SIGUSR2)
        server.stop_on_signals(signal.SIGUSR2)
        try:
            seen = 0
            while not server.stopping:
                for each in server.queues():
                    seen += 1
                    signal.raise_signal(signal.SIGUSR2)
                    assert each.should_stop
        finally:
            signal.signal(signal.SIGUSR2, before)
        assert seen == 1

    def test_on_signals_is_for_the_main_thread(self) -> None:
        with pytest.raises(BadOption, match="main thread"):
            InBackground(QueueServer(NAME).stop_on_signals).result()

    def test_may_interrupt_itself_anywhere(self, serve: Serve) -> None:
        """A second signal comes while the handler of the first runs."""
        made(1)
        server = serve("A")
        depth = 0

        def again(frame: Any, event: str, argument: Any) -> None:
            nonlocal depth
            if depth < 3:
                depth += 1
                server.stop()

        def stop() -> None:
            sys.setprofile(again)
            try:
                server.stop()
            finally:
                sys.setprofile(None)

        InBackground(stop).result()
        assert server.stopping

    def test_hands_everything_over_at_once(self, serve: Serve) -> None:
        made(4)
        server = serve("A")
        has(server, 4)
        stranger("B")
        server.close()
        assert table() == "B B B B"
        assert [row.name for row in Server.objects.all()] == ["B"]
        assert not server.is_registered

    def test_waits_for_the_work_in_hand_and_then_hands_it_over(self, serve: Serve) -> None:
        made(2)
        server = serve("A")
        has(server, 2)
        stranger("B")
        eventually(lambda: len(server.held) == 1)
        mine = server.held[0]
        with mine.working():
            closing = InBackground(server.close)
            eventually(lambda: mine.should_stop)
            eventually(lambda: table().count(">B"))
            assert closing.is_alive()
            mine.ensure_held()
        closing.result(20)
        assert table() == "B B"

    def test_that_waits_no_longer_costs_the_work_its_queue(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        with pytest.raises(LeaseLost), server.held[0].working() as work:
            server.close(timeout=0)
            assert table() == "-"
            assert work.lost.is_set()
            work.ensure_held()

    def test_after_an_error_in_the_loop_is_as_clean(self) -> None:
        made(2)
        with pytest.raises(ZeroDivisionError), QueueServer(NAME) as server:
            has(server, 2)
            for _ in server.queues():
                raise ZeroDivisionError
        assert table() == "- -"
        assert Server.objects.count() == 0

    def test_after_it_was_judged_dead_waits_only_until_the_old_work_has_ended(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        old = server.held[0]
        with contextlib.suppress(LeaseLost), old.working():
            dies(Server.objects.get())
            eventually(lambda: [each for each in server.held if each.fence > old.fence], 20)
            closing = InBackground(server.close, 60.0)
            eventually(lambda: Server.objects.filter(state=Server.State.DRAINING).exists())
            eventually(lambda: table() == "A")
        closing.result(20)
        assert Server.objects.count() == 0


class TestBeingJudgedDead:
    def test_is_mended_by_registering_again(self, serve: Serve) -> None:
        made(2)
        server = serve("A")
        has(server, 2)
        before, name = server.held, server.name
        dies(Server.objects.get())
        eventually(lambda: all(each.lost.is_set() for each in before))
        has(server, 2)
        assert all(now.fence > then.fence for now, then in zip(server.held, before, strict=True))
        assert server.name != name
        assert Server.objects.count() == 1

    def test_does_not_let_old_and_new_work_on_a_queue_run_at_once(self, serve: Serve) -> None:
        made(1)
        server = serve("A")
        has(server, 1)
        loop = server.queues()
        old = next(loop)
        dies(Server.objects.get())
        eventually(lambda: server.held and server.held[0] is not old, 20)
        assert list(server.queues()) == []
        with pytest.raises(LeaseLost), server.held[0].working():
            pass
        loop.close()
        assert [each.fence > old.fence for each in server.queues()] == [True]

    def test_happens_to_a_process_that_was_stopped_for_too_long_which_then_joins_again(
        self, spawn: Spawner
    ) -> None:
        made(2, judge_dead_after=1.5, drain_within=30)
        child = spawn(serve_stopped_once)
        child.line("has 2")
        b = stranger("B")
        child.line("has 1")
        eventually(lambda: replan(if_due=True) and table() == "B B", 20)
        child.send(signal.SIGCONT)
        child.line("lost")
        left(b)
        child.line("has 2")
        assert table() == "A A"
        child.send(signal.SIGTERM)
        child.succeed()
        assert table() == "- -"


def serve_stopped_once() -> None:
    with QueueServer(NAME, name="A") as server:
        server.stop_on_signals()
        said(server, 2)
        mine = said(server, 1)
        with background.quiet():  # not in the middle of a transaction: on SQLite nobody else could write
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        with pytest.raises(LeaseLost):
            mine.ensure_held()
        eventually(mine.lost.is_set)
        print("lost", flush=True)
        said(server, 2)
        while not server.stopping:
            list(server.queues())


def said(server: QueueServer, count: int) -> HeldQueue:
    has(server, count)
    print(f"has {count}", flush=True)
    return server.held[0]


class TestATaskTypeThatIsDeleted:
    def test_under_a_running_server_is_told_in_the_log_and_waited_for(
        self, serve: Serve, caplog: pytest.LogCaptureFixture, statements: list[Statement]
    ) -> None:
        made(2)
        server = serve("A")
        has(server, 2)
        before = server.held
        began = time.monotonic()
        Queue.objects.all().delete()
        Server.objects.all().delete()
        TaskType.objects.all().delete()
        eventually(lambda: not server.is_registered)
        eventually(lambda: "trying again" in caplog.text)
        assert all(not each.is_held for each in before)
        statements.clear()
        eventually(lambda: len(of(statements, "resourcepool-queues")) >= 4, 20)
        assert len(of(statements, "resourcepool-queues")) <= 10 * (time.monotonic() - began)
        assert caplog.text.count("trying again") == 1
        made(2)
        has(server, 2)

    def test_does_not_keep_a_server_from_closing(self, serve: Serve) -> None:
        made(2)
        server = serve("A")
        has(server, 2)
        Queue.objects.all().delete()
        Server.objects.all().delete()
        TaskType.objects.all().delete()
        server.close()
        assert not server.is_registered


def of(statements: list[Statement], thread: str) -> list[str]:
    return [one.sql for one in statements if one.thread == thread]


def test_an_idle_server_costs_two_statements_a_heartbeat_and_writes_only_its_heartbeat(
    serve: Serve, statements: list[Statement]
) -> None:
    every = 0.2
    made(50, heartbeat_every=every)
    server = serve("A")
    has(server, 50)
    stranger("B")
    eventually(lambda: ">" not in table(), 20)
    generation = TaskType.objects.get().generation
    settled: Any = server._membership
    eventually(lambda: settled._generation == generation)
    statements.clear()
    began = time.monotonic()
    eventually(lambda: len(of(statements, "resourcepool-queues")) >= 10, 30)
    sent, heartbeats = list(statements), (time.monotonic() - began) / every
    looks, beats = of(sent, "resourcepool-queues"), of(sent, "resourcepool-beat")
    assert {sql.split()[0] for sql in looks} == {"SELECT"}
    assert {sql.split()[0] for sql in beats} == {"UPDATE"}
    assert len(looks) <= heartbeats + 2
    assert len(beats) <= heartbeats + 2


def use_in_a_forked_child() -> None:
    server = QueueServer(NAME, name="A").start()
    eventually(lambda: server.held)
    mine = server.held[0]
    pid = os.fork()
    if pid == 0:
        try:
            for call in (lambda: next(server.queues()), lambda: server.held, mine.ensure_held):
                with pytest.raises(LeaseFromAnotherProcess):
                    call()
            assert not server.is_registered
            assert not mine.is_held
            server.close()
        except BaseException:  # noqa: BLE001 (shown, and told by the code)
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    mine.ensure_held()
    assert queue("1").cur_server_id is not None
    server.close()
    print("fine", flush=True)


def test_a_forked_child_is_refused_and_the_parent_goes_on(spawn: Spawner) -> None:
    made(1)
    assert "fine" in spawn(use_in_a_forked_child).succeed()
    assert table() == "-"


def leave_without_a_word() -> None:
    server = QueueServer(NAME, name="A").start()
    eventually(lambda: server.held)
    print("serves", flush=True)


def test_a_process_that_ends_without_closing_is_found_dead_at_once(spawn: Spawner) -> None:
    made(2)
    spawn(leave_without_a_word).succeed()
    assert not Server.objects.alive().exists()
    b = stranger("B")
    assert table() == "B B"
    left(b)
