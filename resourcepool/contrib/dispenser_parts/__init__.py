"""The parts of a task dispenser by themselves: a pool, a bucket, and the list of all buckets.

from resourcepool.contrib.dispenser_parts import TaskBucket, TaskPool, TaskRouter
"""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["TaskBucket", "TaskPool", "TaskRouter"]

if TYPE_CHECKING:
    from resourcepool.contrib.dispenser_parts.bucket import TaskBucket, TaskRouter
    from resourcepool.contrib.dispenser_parts.pool import TaskPool
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"TaskBucket": "bucket", "TaskPool": "pool", "TaskRouter": "bucket"}
    )
