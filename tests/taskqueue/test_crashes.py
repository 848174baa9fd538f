"""A task that kills its process does so to its neighbours once; from then on it is alone."""

import os
import signal
import time
from typing import Any

import pytest

from resourcepool.models import Task
from resourcepool.taskqueue import Consumer, handler, submit
from tests.eventually import eventually
from tests.spawned import Spawner
from tests.taskqueue.consumers import WITHIN, stream, task

State = Task.State


def consumer() -> None:
    """Consume until the killer comes."""
    handler("kill")(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    handler("innocent")(_while_the_killer_runs)
    Consumer("oracle").run()


def _while_the_killer_runs(_: Any) -> None:
    while task("killer").state == State.RUNNING:
        time.sleep(0.01)


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_task_that_kills_its_process_takes_its_neighbours_with_it_only_once(
    spawn: Spawner, place: int
) -> None:
    stream(lanes=4, term_ttl=1, max_crashes=3, on_failure="dead-letter")
    keys = ["a", "b", "c"]
    keys.insert(place, "killer")
    for key in keys:
        submit("oracle", "kill" if key == "killer" else "innocent", key=key, lane=key)
    for _ in range(3):
        assert spawn(consumer).wait() == -signal.SIGKILL
    last = spawn(consumer)
    eventually(lambda: not Task.objects.unfinished().exists(), WITHIN)
    last.kill()
    innocent = (State.DONE, 1)
    assert {one.key: (one.state, one.crashes) for one in Task.objects.all()} == {
        "killer": (State.DEAD, 3),
        **dict.fromkeys("abc", innocent),
    }
