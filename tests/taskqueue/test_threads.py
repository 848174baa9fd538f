"""The threads of handlers: whatever a handler leaves behind, none of them ends unnoticed."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.taskqueue import handler, submit, timers
from tests.taskqueue.consumers import consuming, finished, states, stream, task
from tests.taskqueue.timers import runners


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Refusing(logging.Handler):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self._error = error

    def emit(self, record: logging.LogRecord) -> None:
        raise self._error


@pytest.fixture(params=[OSError, SystemExit])
def _log_that_raises(request: pytest.FixtureRequest) -> Iterator[None]:
    logger, refusing = logging.getLogger("resourcepool.taskqueue.running_task"), Refusing(request.param)
    logger.addHandler(refusing)
    yield
    logger.removeHandler(refusing)


def fails_then_runs(error: Exception) -> None:
    """Run a task that raises this, and another one after it."""
    stream(retries=0, on_failure="skip")

    @handler("fail")
    def fail(_: Any) -> None:
        raise error

    handler("note")(lambda _: None)
    submit("oracle", "fail", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        finished(2)
    assert states() == {"a": "skipped", "b": "done"}


def test_an_exception_that_cannot_be_printed_ends_no_thread() -> None:
    fails_then_runs(Exits())
    assert task("a").outcome.startswith("SystemExit:")


@pytest.mark.usefixtures("_log_that_raises")
def test_a_log_that_cannot_be_written_ends_no_thread() -> None:
    fails_then_runs(ValueError("disk full"))


def test_timers_whose_exceptions_cannot_be_printed_leave_all_threads_of_their_node() -> None:
    runners.topic(retries=0)

    @timers.on("t")
    def fail(one: Any) -> None:
        if one.name != "last":
            raise Exits

    for number in range(4):
        runners.due(f"n{number}")
    with runners.handling(threads=4):
        runners.over(4)
        runners.due("last")
        runners.over(5)
    assert runners.states() == {**{f"n{number}": "dead" for number in range(4)}, "last": "done"}
