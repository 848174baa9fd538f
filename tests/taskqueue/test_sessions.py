"""The database sessions of handlers: a lost session is no failure, and no state of a task reaches the next."""

import socket
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone, translation

from resourcepool.models import Stream
from resourcepool.taskqueue import handler, submit
from tests.aliases import alias
from tests.taskqueue.consumers import consuming, finished, states, stream, task
from tests.taskqueue.sessions import end, keep_them, session

on_servers = pytest.mark.only("mysql", "postgresql")
used: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_used() -> None:
    used.clear()


def use(one: Any) -> None:
    with transaction.atomic(), one.guard():
        used.append(session())


@on_servers
def test_a_session_that_ends_between_two_tasks_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_them(monkeypatch, None, is_checked=True)
    stream(retries=0, max_crashes=1)
    handler("use")(use)
    with consuming():
        for count in (1, 2, 3):
            submit("oracle", "use", key=str(count))
            finished(count)
            end(used[-1])
    assert [task(key).attempts for key in states()] == [1, 1, 1]
    assert (set(states().values()), len(set(used))) == ({"done"}, 3)


@on_servers
@pytest.mark.parametrize(("seconds", "is_another"), [(0, True), (None, False)])
def test_a_session_is_kept_from_task_to_task_as_from_request_to_request(
    seconds: int | None, is_another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_them(monkeypatch, seconds)
    stream()
    handler("use")(use)
    submit("oracle", "use")
    submit("oracle", "use")
    with consuming():
        finished(2)
    assert (used[0] != used[1]) is is_another


@on_servers
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_what_a_lost_session_broke_begins_again(is_wrapped: bool) -> None:
    stream(retries=0, retry_delay=0, max_crashes=3)
    ran: list[int] = []

    @handler("lose")
    def lose(one: Any) -> None:
        ran.append(one.attempt)
        if one.attempt < 3:
            end(session())
        try:
            Stream.objects.update(retry_delay=7)
        except Exception as error:
            if is_wrapped:
                raise KeyError("my own") from error
            raise

    submit("oracle", "lose", key="a")
    with consuming():
        finished(1)
    assert ran == [1, 2, 3]
    assert (states(), task("a").failures, task("a").crashes) == ({"a": "done"}, 0, 2)


@on_servers
def test_a_server_that_is_away_is_no_failure_of_the_task_that_begins_meanwhile() -> None:
    stream(retries=0, retry_delay=0, max_crashes=3)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with alias("away", leased=False, HOST="127.0.0.1", PORT=nobody.getsockname()[1]):

            @handler("use")
            def use_it(one: Any) -> None:
                if one.attempt == 1:
                    connections["away"].ensure_connection()

            submit("oracle", "use", key="a")
            with consuming():
                finished(1)
    assert (states(), task("a").failures, task("a").crashes) == ({"a": "done"}, 0, 1)


def test_language_and_time_zone_of_one_task_do_not_reach_the_next() -> None:
    stream()
    seen: list[Any] = []

    @handler("set")
    def change(_: Any) -> None:
        seen.append((translation.get_language(), timezone.get_current_timezone_name()))
        translation.activate("de")
        timezone.activate("Asia/Tokyo")

    submit("oracle", "set")
    submit("oracle", "set")
    with consuming():
        finished(2)
    assert seen == [(translation.get_language(), timezone.get_current_timezone_name())] * 2
