"""The threads of handlers: whatever a handler leaves behind, none of them ends unnoticed."""

import ctypes
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool.taskqueue import Consumer, handler, submit, timers
from resourcepool.taskqueue.worker_loop import EXIT_CODE
from tests.eventually import InBackground, closing, eventually
from tests.spawned import Spawner
from tests.taskqueue.consumers import WITHIN, Gate, consuming, exit_process, finished, states, stream, task
from tests.taskqueue.timers import runners


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Text(str):
    __slots__ = ()

    def __format__(self, spec: str) -> str:
        raise KeyboardInterrupt


class Unformatted(Exception):
    def __str__(self) -> str:
        return Text("no words")


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


def raise_late(error: type[BaseException], thread: int) -> None:
    """Raise this in that thread, as time limits do."""
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error)) == 1


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


@pytest.mark.parametrize("error", [Exits, Unformatted])
def test_an_exception_that_cannot_be_printed_ends_no_thread(error: type[Exception]) -> None:
    fails_then_runs(error())
    assert task("a").outcome.startswith(f"{error.__name__}: ")


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


class Late:
    """A handler whose thread gets an exception once it waits for its next task."""

    def __init__(self) -> None:
        self.thread = 0

    def __call__(self, _: Any) -> None:
        self.thread = threading.get_ident()

    def ends(self) -> None:
        raise_late(TimeoutError, self.thread)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_consumer_whose_thread_has_ended_ends_its_process_and_gives_back_what_it_had() -> None:
    stream(lanes=1)  # so the thread that ends takes the next task, too
    late, gate = Late(), Gate()
    handler("late")(late)
    handler("gate")(gate)
    submit("oracle", "late", key="a", lane="a")
    running = InBackground(Consumer("oracle", exit_process=exit_process).run)
    finished(1)
    late.ends()
    submit("oracle", "gate", key="b", lane="b")
    with pytest.raises(Exception, match="a thread that runs handlers has ended"):
        running.result(WITHIN)
    gate.may_end.set()
    assert (states(), task("b").failures, task("b").crashes) == ({"a": "done", "b": "ready"}, 0, 0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_so_does_a_node() -> None:
    late = Late()
    timers.on("t")(late)
    runners.due("a")
    running = InBackground(timers.TimerRunner(threads=1, exit_process=exit_process).run)
    runners.over(1)
    late.ends()
    runners.due("b")
    with pytest.raises(Exception, match="a thread that runs handlers has ended"):
        running.result(WITHIN)
    assert (runners.states(), runners.timer("b").failures) == ({"a": "done", "b": "pending"}, 0)


def consumer_with_late_errors() -> None:
    """Consume; in a thread whose task is done an error is raised, when it takes the next one."""

    def raise_then(key: str, thread: int) -> None:
        eventually(lambda: task(key).finished_at, WITHIN)
        raise_late(TimeoutError, thread)
        print("raised", flush=True)

    def run(one: Any) -> None:
        told = (raise_then, one.key, threading.get_ident())
        threading.Thread(target=closing, args=told, daemon=True).start()

    handler("late")(run)
    Consumer("oracle").run()


def test_a_process_without_a_thread_for_its_tasks_ends_to_be_started_again(spawn: Spawner) -> None:
    stream(term_ttl=1)
    submit("oracle", "late", key="a")
    first = spawn(consumer_with_late_errors)
    first.line("raised")
    submit("oracle", "late", key="b")
    assert first.wait() == EXIT_CODE
    assert states() == {"a": "done", "b": "ready"}
    spawn(consumer_with_late_errors)
    finished(2)
