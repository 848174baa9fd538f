"""A process that has used a dispenser forks: parent and child each go on by themselves."""

import json
import multiprocessing
import os
import sys
from typing import Any

import pytest

from resourcepool.models import DispenserTask
from resourcepool.taskqueue import TaskDispenser
from tests.spawned import Spawner
from tests.taskqueue.dispenser.dispensers import dispenser, states

TASKS, CHILDREN = 200, 3

pytestmark = [pytest.mark.only("mysql", "postgresql")]


def drain(d: TaskDispenser, worker: str) -> list[str]:
    """Have all tasks assigned and done; return which this worker has done."""
    done = []
    while told := d.assign_tasks(7, worker):
        said = d.tasks_done(worker, told)
        done += [f"{one.key}:{one.fence}" for one in told if said[one.key] == "done"]
    return done


def _child(d: TaskDispenser, worker: str, results: Any) -> None:
    results.put(drain(d, worker))


def forks(way: str) -> None:
    """Get some tasks, fork workers that share the dispenser, and finish all tasks together; print these."""
    d = TaskDispenser("reviews")
    d.touch("parent")
    done = [f"{one.key}:{one.fence}" for one in d.assign_tasks(3, "parent")]
    d.tasks_done("parent", [(key, int(fence)) for key, _, fence in (one.partition(":") for one in done)])
    if way == "multiprocessing":
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        children = [context.Process(target=_child, args=(d, f"child {n}", results)) for n in range(CHILDREN)]
        for child in children:
            child.start()
        done += drain(d, "parent")
        for _ in children:
            done += results.get(timeout=60)
        for child in children:
            child.join(60)
            assert child.exitcode == 0
    else:  # the child exits at once, without touching the parent's session
        pids = []
        for _ in range(CHILDREN):
            pid = os.fork()
            if not pid:
                sys.exit(0)
            pids.append(pid)
        for pid in pids:
            assert os.waitpid(pid, 0)[1] == 0
        done += drain(d, "parent")
    print(json.dumps(done))


@pytest.mark.parametrize("way", ["multiprocessing", "exit"])
def test_every_task_is_done_once_by_parent_or_child(spawn: Spawner, way: str) -> None:
    dispenser({key: float(key) for key in range(TASKS)})
    child = spawn(forks, way)
    done = json.loads(child.succeed(90).splitlines()[-1])
    assert sorted(int(one.partition(":")[0]) for one in done) == list(range(TASKS))
    assert set(states().values()) == {"done"}
    assert DispenserTask.objects.count() == TASKS
