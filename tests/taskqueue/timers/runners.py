"""Due timers, and a runner in a thread, for tests."""

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from resourcepool.models import Timer, Topic
from resourcepool.taskqueue import timers
from tests.eventually import InBackground, eventually
from tests.taskqueue.consumers import WITHIN, exit_process

__all__ = ["WITHIN", "due", "handling", "over", "states", "timer", "topic"]


def topic(name: str = "t", **options: Any) -> Topic:
    made: Topic = Topic.objects.update_or_create(name=name, defaults=options)[0]
    return made


def due(name: str = "a", *, ago: float = 1, **more: Any) -> timers.Scheduled:
    """Schedule a timer that is due already."""
    moment = timezone.now() - datetime.timedelta(seconds=ago)
    when = {"start": moment} if "every" in more else {"at": moment}
    return timers.schedule(name, **{"topic": "t", **when, **more})


def timer(name: str = "a") -> Timer:
    found: Timer = Timer.objects.get(name=name)
    return found


def states() -> dict[str, str]:
    return dict(Timer.objects.order_by("name").values_list("name", "state"))


def over(count: int) -> None:
    eventually(lambda: Timer.objects.exclude(finished_at=None).count() == count, WITHIN, states)


@contextlib.contextmanager
def handling(
    kind: type[timers.TimerRunner] = timers.TimerRunner, **options: Any
) -> Iterator[timers.TimerRunner]:
    """Run a node in a thread for the length of the block."""
    runner = kind(**{"exit_process": exit_process, **options})
    running = InBackground(runner.run)
    try:
        yield runner
    finally:
        runner.stop()
        running.result(WITHIN)
