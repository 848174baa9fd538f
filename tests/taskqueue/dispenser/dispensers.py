"""A dispenser for tests, and its contents."""

from collections.abc import Iterable
from typing import Any

from resourcepool.models import Bucket, DispenserTask
from resourcepool.taskqueue import Assigned, TaskDispenser
from tests.app.rows import expire

NAME = "reviews"


def dispenser(tasks: dict[Any, float] | None = None, **options: Any) -> TaskDispenser:
    """Return a dispenser with these tasks in its pool."""
    made = TaskDispenser(NAME, **options)
    made.add_many(tasks or {})
    return made


def letters(text: str) -> dict[str, float]:
    """Return a task for each letter, in this order."""
    return {letter: float(place) for place, letter in enumerate(text)}


def keys(tasks: Iterable[Assigned]) -> str:
    return "".join(str(task.key) for task in tasks)


def states() -> dict[str, str]:
    """Return {key: state} in the order in which tasks are handed out."""
    return dict(DispenserTask.objects.in_order().values_list("key", "state"))


def waiting() -> str:
    """Return the keys that wait, in order."""
    return "".join(key for key, state in states().items() if state == "ready")


def task(key: str) -> DispenserTask:
    found: DispenserTask = DispenserTask.objects.get(key=key)
    return found


def bucket(worker: str) -> Bucket:
    found: Bucket = Bucket.objects.get(name=worker)
    return found


def run_out(worker: str) -> None:
    """Let this worker's bucket expire."""
    expire(bucket(worker))
