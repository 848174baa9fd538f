"""Which worker has which bucket (document 003, R3.4)."""

from datetime import timedelta
from typing import Any

from django.db import connections
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import checking
from resourcepool.taskqueue.dispenser import buckets
from resourcepool.taskqueue.dispenser.models import Bucket


class TaskRouter:
    """The live buckets of a pool, by worker.

        router = TaskRouter("reviews", prefix="reviews-{}")
        TaskBucket(router.add("alice"), pool="reviews").add(tasks)

    A bucket that expires leaves the router by itself.
    """

    def __init__(self, key: str, prefix: str = "{}", exp: float | timedelta = 600.0) -> None:
        """Name the pool; raises BadOption.

        Args:
            prefix: makes a bucket's name of a worker's, where it has ``{}``.
            exp: how long a bucket lasts that nobody puts anything into: seconds or a timedelta, up to a day.
        """
        self._key, self._prefix = checking.name("key", key), prefix
        self._ttl, self._using = options.seconds("exp", exp, least=0.1), buckets.database()
        if self.make_task_name("one") == self.make_task_name("another"):
            raise self._bad_prefix()

    def make_task_name(self, val: str) -> str:
        """Return the name of the bucket of this worker; raises BadOption."""
        worker = checking.name("val", val)
        try:
            name = self._prefix.format(worker)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._bad_prefix() from None
        return checking.name("prefix", name)

    def add(self, name: str, task_name: str | None = None) -> str:
        """Make a bucket for this worker, unless it has one; returns the bucket's name.

        Raises:
            BadOption: a name is not allowed.
            ClaimInTransaction: a transaction is open, whose rollback would undo it.
        """
        worker = checking.name("name", name)
        bucket = self.make_task_name(worker) if task_name is None else checking.name("task_name", task_name)
        buckets.refuse_open_transaction(connections[self._using])
        known = self.get(worker)
        if known is not None:
            return known
        buckets.opened(self._using, self._key, bucket, worker, self._ttl)
        return bucket

    def get(self, name: str) -> str | None:
        """Return the name of this worker's bucket; None: it has no live one."""
        rows = self._live().filter(holder=checking.name("name", name)).order_by("pk")
        found: str | None = retrying(connections[self._using], rows.values_list("name", flat=True).first)
        return found

    def buckets(self) -> list[str]:
        """Return the names of all live buckets."""
        rows = self._live().order_by("pk").values_list("name", flat=True)
        return retrying(connections[self._using], lambda: list(rows.all()))

    def clear(self) -> int:
        """Remove all buckets, and return their tasks to the pool; returns how many tasks they had."""
        rows = Bucket.objects.using(self._using).filter(dispenser_id=self._key).values_list("pk", flat=True)
        connection, returned = connections[self._using], 0
        for pk in retrying(connection, lambda: list(rows)):
            returned += buckets.emptied(self._using, pk, is_removed=True)
        return returned

    def _bad_prefix(self) -> BadOption:
        return BadOption(
            "prefix", self._prefix, Sentence(_("a text with {} in the place of the worker's name"))
        )

    def _live(self) -> Any:
        rows = Bucket.objects.using(self._using)
        return rows.filter(dispenser_id=self._key, busy_before__gt=DbNow())
