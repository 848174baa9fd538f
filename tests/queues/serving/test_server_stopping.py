"""The end of a server: by a signal, in order, with work in hand."""

import contextlib
import signal
import sys
from typing import Any

import pytest

from resourcepool.db.threads import Daemon
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases import shutdown
from resourcepool.leases.keeper import keeper
from resourcepool.models import Server
from resourcepool.queues import QueueServer
from tests.eventually import InBackground, eventually
from tests.queues.conftest import Serve
from tests.queues.members import (
    NAME,
    create_queue_group,
    expire,
    foreign_server,
    owners,
    wait_for_queues,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestStopping:
    def test_from_a_signal_ends_the_loop(self, serve: Serve) -> None:
        create_queue_group(3)
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
        create_queue_group(1)
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

    def test_signs_off_also_when_it_was_not_heard_of_in_time(self, serve: Serve) -> None:
        """Perhaps no other server is running that could presume it dead."""
        server = serve("A", 2)
        (lease,) = keeper.leases()
        server.stop()  # otherwise it would register again
        lease._lose("a test lets it stand still")
        server.close()
        assert owners() == "- -"
        assert Server.objects.count() == 0

    def test_gives_the_idle_queues_away_at_once_and_the_one_in_hand_when_its_work_ends(
        self, serve: Serve
    ) -> None:
        server = serve("A", 4)
        mine = server.held[0]
        with mine.working():
            foreign_server("B")
            server.stop()
            eventually(lambda: sorted(owners().split()) == ["A>B", "B", "B", "B"], 20, owners)
            mine.ensure_held()
        eventually(lambda: owners() == "B B B B", 20, owners)
        assert server.is_registered, "until it is closed"

    def test_is_not_held_up_by_a_loop_that_was_left_in_the_middle(
        self, serve: Serve, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = serve("A", 2)
        loop = server.queues()
        assert next(loop).is_in_hand
        server.close(timeout=0.1)
        assert "work in hand" not in caplog.text
        assert list(loop) == []

    def test_by_the_end_of_the_process_is_no_reason_to_register_again(self, serve: Serve) -> None:
        server = serve("A", 2)
        before = set(Server.objects.values_list("pk", flat=True))
        shutdown.release_everything(keeper.unreleased())
        eventually(lambda: not server._thread.is_alive, 20)
        # In the middle of a turn it still signs off; a new run would be another row.
        assert set(Server.objects.values_list("pk", flat=True)) <= before
        assert not server.is_registered

    def test_waits_for_the_work_in_hand_and_then_hands_it_over(self, serve: Serve) -> None:
        server = serve("A", 2)
        foreign_server("B")
        eventually(lambda: len(server.held) == 1)
        mine = server.held[0]
        with mine.working():
            closing = InBackground(server.close)
            eventually(lambda: mine.should_stop)
            eventually(lambda: owners().count(">B"))
            assert closing.is_alive()
            mine.ensure_held()
        closing.result(20)
        assert owners() == "B B"

    def test_that_waits_no_longer_costs_the_work_its_queue(self, serve: Serve) -> None:
        server = serve("A", 1)
        with pytest.raises(LeaseLost), server.held[0].working() as work:
            server.close(timeout=0)
            assert owners() == "-"
            assert work.lost.is_set()
            work.ensure_held()

    def test_after_an_error_in_the_loop_is_as_clean(self) -> None:
        create_queue_group(2)
        with pytest.raises(ZeroDivisionError), QueueServer(NAME) as server:
            wait_for_queues(server, 2)
            for _ in server.queues():
                raise ZeroDivisionError
        assert owners() == "- -"
        assert Server.objects.count() == 0

    def test_after_it_was_judged_dead_waits_only_until_the_old_work_has_ended(self, serve: Serve) -> None:
        server = serve("A", 1)
        old = server.held[0]
        with contextlib.suppress(LeaseLost), old.working():
            expire(Server.objects.get())
            eventually(lambda: [each for each in server.held if each.fence > old.fence], 20)
            closing = InBackground(server.close, 60.0)
            eventually(lambda: Server.objects.filter(state=Server.State.DRAINING).exists())
            eventually(lambda: owners() == "A")
        closing.result(20)
        assert Server.objects.count() == 0


def test_a_server_whose_thread_cannot_start_is_none_and_may_be_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_queue_group(2)
    with monkeypatch.context() as broken:
        ensure_started = Daemon.ensure_started

        def fail(daemon: Daemon) -> None:
            if daemon._name == "queues":
                raise RuntimeError("can't start new thread")
            ensure_started(daemon)

        broken.setattr(Daemon, "ensure_started", fail)
        server = QueueServer(NAME, name="A")
        with pytest.raises(RuntimeError):
            server.start()
    assert Server.objects.count() == 0
    assert owners() == "- -"
    with server:
        wait_for_queues(server, 2)
