"""The task table: streams in order under an elected consumer, and dispensers for workers that come and go."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazily

if TYPE_CHECKING:
    from resourcepool.taskqueue.consumer import Consumer
    from resourcepool.taskqueue.dispenser.bucket import TaskBucket, TaskRouter
    from resourcepool.taskqueue.dispenser.dispenser import Done, TaskDispenser
    from resourcepool.taskqueue.dispenser.given import Assigned
    from resourcepool.taskqueue.dispenser.pool import TaskPool
    from resourcepool.taskqueue.dispenser.putting import Rebuilt
    from resourcepool.taskqueue.handlers import handler
    from resourcepool.taskqueue.models import Stream, Task
    from resourcepool.taskqueue.running import GivenBack, RunningTask
    from resourcepool.taskqueue.submitting import NewTask, Submitted, submit, submit_many

WHERE = {
    "Assigned": "dispenser.given",
    "Consumer": "consumer",
    "Done": "dispenser.dispenser",
    "GivenBack": "running",
    "NewTask": "submitting",
    "Rebuilt": "dispenser.putting",
    "RunningTask": "running",
    "Stream": "models",
    "Submitted": "submitting",
    "Task": "models",
    "TaskBucket": "dispenser.bucket",
    "TaskDispenser": "dispenser.dispenser",
    "TaskPool": "dispenser.pool",
    "TaskRouter": "dispenser.bucket",
    "handler": "handlers",
    "submit": "submitting",
    "submit_many": "submitting",
}
__all__ = ["Assigned", "Consumer", "Done", "GivenBack", "NewTask", "Rebuilt"]
__all__ += ["RunningTask", "Stream", "Submitted", "Task", "TaskBucket", "TaskDispenser"]
__all__ += ["TaskPool", "TaskRouter", "handler", "submit", "submit_many"]

__getattr__ = lazily(__name__, WHERE)
