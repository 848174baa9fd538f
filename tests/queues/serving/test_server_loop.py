"""The loop over a server's queues: which queues it yields, and when it waits."""

import contextlib
import math
import os
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from resourcepool.clock import monotonic
from resourcepool.exceptions import BadOption
from resourcepool.queues import administration
from resourcepool.queues.serving import server as serving
from tests.eventually import eventually, in_threads
from tests.queues.conftest import Serve
from tests.queues.members import (
    NAME,
    TTL,
    foreign_server,
    read_queue_group,
    wait_for_queues,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestTheLoop:
    def test_gives_no_queue_to_two_threads_at_once(self, serve: Serve) -> None:
        server = serve("A", 6)
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

    def test_that_is_left_after_one_queue_begins_with_the_next(self, serve: Serve) -> None:
        server = serve("A", 4)
        worked = [next(server.queues()).queue_id for _ in range(10)]
        assert worked == ["1", "2", "3", "4", "1", "2", "3", "4", "1", "2"]

    def test_goes_on_where_it_was_when_the_queue_yielded_last_has_gone(self, serve: Serve) -> None:
        server = serve("A", 4)
        assert [next(server.queues()).queue_id for _ in range(2)] == ["1", "2"]
        administration.remove_queues(NAME, ["2"])
        wait_for_queues(server, 3)
        assert [each.queue_id for each in server.queues()] == ["3", "4", "1"]

    def test_gives_the_queue_back_when_it_is_left(self, serve: Serve) -> None:
        server = serve("A", 1)
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
        server = serve("A", 1)
        mine = server.held[0]
        foreign_server("B")
        with contextlib.ExitStack() as stack:
            if why == "it is paused":
                administration.pause(NAME)
                eventually(lambda: mine.should_stop)
            elif why == "it has none":
                administration.drain(NAME, "A")
                eventually(mine.lost.is_set)
            else:
                stack.enter_context(mine.working())
            if why == "all is asked for":
                administration.drain(NAME, "A")
                eventually(lambda: mine.is_asked_for)
            waits: list[float] = []
            monkeypatch.setattr(server, "wait", waits.append)
            assert list(server.queues()) == []
            assert len(waits) == 1

    def test_passes_over_a_queue_for_as_long_as_it_was_told(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = serve("A", 3)
        for each in server.queues():
            if each.queue_id != "2":
                each.skip_for(timedelta(hours=1))
        assert [each.queue_id for each in server.queues()] == ["2"]
        monkeypatch.setattr(serving, "monotonic", lambda: monotonic() + 3_601)
        assert [each.queue_id for each in server.queues()] == ["3", "1", "2"]

    def test_waits_for_the_first_of_the_queues_that_it_passes_over(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = serve("A", 2, heartbeat_every=5, judge_dead_after=TTL)
        for each, seconds in zip(server.queues(), (0.5, 3_600), strict=True):
            each.skip_for(seconds)
        waits: list[float] = []
        monkeypatch.setattr(server, "wait", waits.append)
        assert list(server.queues()) == []
        assert [0 <= seconds <= 0.5 for seconds in waits] == [True]

    def test_waits_no_longer_than_a_heartbeat_when_it_passes_over_all(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = serve("A", 1)
        server.held[0].skip_for(3_600)
        waits: list[float] = []
        monkeypatch.setattr(server, "wait", waits.append)
        assert list(server.queues()) == []
        assert waits == [read_queue_group().heartbeat_every]

    @pytest.mark.parametrize("wrong", [-1, math.nan, "1", None])
    def test_passes_over_a_queue_for_seconds_only(self, serve: Serve, wrong: Any) -> None:
        server = serve("A", 1)
        with pytest.raises(BadOption, match="seconds"):
            server.held[0].skip_for(wrong)
