"""Rows of dispensers with tasks and buckets, for tests of pages and commands."""

from typing import Any

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Bucket, Dispenser, DispenserTask


def dispenser(name: str = "reviews", **options: Any) -> Dispenser:
    made: Dispenser = Dispenser.objects.create(name=name, **options)
    return made


def tasks(*keys: str, name: str = "reviews", **columns: Any) -> None:
    """Make ready tasks, each later than the one before."""
    for number, key in enumerate(keys):
        DispenserTask.objects.create(dispenser_id=name, key=key, **{"score": number, **columns})


def bucket(worker: str = "alice", *keys: str, name: str = "reviews", lasts: float = 600) -> Bucket:
    """Give a worker these tasks, which are made for it."""
    made: Bucket = Bucket.objects.create(dispenser_id=name, name=worker)
    Bucket.objects.filter(pk=made.pk).update(holder=worker, busy_before=DbLater(lasts))
    tasks(*keys, name=name, state="assigned", bucket=made, fence=1, assigned_at=DbNow())
    return made


def failed(*keys: str, name: str = "reviews", **columns: Any) -> None:
    """Make tasks that have expired too often."""
    tasks(*keys, name=name, state="failed", expirations=5, finished_at=DbNow(), **columns)


def states() -> dict[str, str]:
    """Return the state of each task, by its key."""
    return dict(DispenserTask.objects.values_list("key", "state"))


def fence(key: str) -> int:
    found: int = DispenserTask.objects.get(key=key).fence
    return found
