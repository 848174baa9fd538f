"""A stream and a consumer in a thread, for tests."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Never

import pytest

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import Consumer
from tests.eventually import InBackground, eventually

WITHIN = 60


def oracle(**options: Any) -> Consumer:
    return Consumer("oracle", **options)


class Dying:
    """A consumer or a node in a thread, whose process would end."""

    def __init__(self, make: Callable[..., Any] = oracle, **options: Any) -> None:
        self.why: list[str] = []
        self.runner = make(exit_process=self._exit_process, **options)
        self._running = InBackground(self.runner.run)

    def _exit_process(self, why: str) -> Any:
        self.why.append(why)
        raise SystemExit

    def said(self) -> str:
        """Return why it ended its process, once."""
        with pytest.raises(SystemExit):
            self._running.result(WITHIN / 2)  # before the gates open by themselves
        (why,) = self.why
        return why


class ProcessExited(Exception):
    """Raised instead of an exit of the process."""


def exit_process(why: str) -> Never:
    raise ProcessExited(why)


def stream(name: str = "oracle", **options: Any) -> Stream:
    """Create a stream without retries, unless ``options`` say so."""
    made: Stream = Stream.objects.create(**{"name": name, "retries": 0, **options})
    return made


def states(name: str = "oracle") -> dict[str, str]:
    """Return {key: state} of the tasks in order."""
    return dict(Task.objects.filter(stream_id=name).in_order().values_list("key", "state"))


def task(key: str) -> Task:
    found: Task = Task.objects.get(key=key)
    return found


def finished(count: int) -> None:
    eventually(lambda: Task.objects.exclude(finished_at=None).count() == count, WITHIN, states)


@contextlib.contextmanager
def consuming(name: str = "oracle", **options: Any) -> Iterator[Consumer]:
    """Run a consumer in a thread for the length of the block."""
    consumer = Consumer(name, exit_process=exit_process, **options)
    running = InBackground(consumer.run)
    try:
        yield consumer
    finally:
        consumer.stop()
        running.result(WITHIN)


class Gate:
    """A handler that says when it has begun, and ends when it is let."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self.tasks: list[Any] = []

    def __call__(self, task: Any) -> None:
        self.tasks.append(task)
        self.began.set()
        assert self.may_end.wait(WITHIN)
