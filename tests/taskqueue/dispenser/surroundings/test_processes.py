"""The races that matter most, between real processes instead of threads."""

import datetime
import json
from typing import Any

import pytest

from resourcepool.models import DispenserTask
from resourcepool.taskqueue import TaskDispenser
from tests.spawned import Spawner
from tests.taskqueue.dispenser.dispensers import dispenser, states

TIMES, TASKS = 15, 120

pytestmark = [pytest.mark.only("mysql", "postgresql")]


def assigns(worker: str) -> None:
    """Get five tasks, again and again, and finish the first of them; print the finished ones."""
    d, done = TaskDispenser("reviews"), []
    for _ in range(TIMES):
        told = d.assign_tasks(5, worker)
        assert DispenserTask.objects.filter(bucket__name=worker, state="assigned").count() <= 5
        said = d.tasks_done(worker, told[:1])
        done += [f"{one.key}:{one.fence}" for one in told[:1] if said[one.key] == "done"]
    print(json.dumps(done))


def rebuilds(_: str) -> None:
    """Give all tasks other scores, time and again."""
    for number in range(TIMES):
        TaskDispenser("reviews").recreate_task_pool({key: float(key * number % 7) for key in range(TASKS)})
    print("[]")


def expires(worker: str) -> None:
    """Have this worker's bucket expire, time and again, and its tasks taken back."""
    from django.utils import timezone

    from resourcepool.models import Bucket

    for _ in range(TIMES):
        Bucket.objects.filter(name=worker).update(busy_before=timezone.now() - datetime.timedelta(hours=1))
        TaskDispenser("reviews").assign_tasks(0, "janitor")
    print("[]")


@pytest.mark.parametrize("other", [assigns, rebuilds, expires])
def test_beside_it_every_task_is_done_under_one_fence_and_no_bucket_is_overfilled(
    spawn: Spawner, other: Any
) -> None:
    dispenser({key: float(key) for key in range(TASKS)})
    children = [spawn(assigns, "alice"), spawn(other, "alice"), spawn(assigns, "bob")]
    done = {one for child in children for one in json.loads(child.succeed(60).splitlines()[-1])}
    keys = [one.partition(":")[0] for one in done]
    assert len(keys) == len(set(keys))
    assert sorted(keys) == sorted(key for key, state in states().items() if state == "done")
