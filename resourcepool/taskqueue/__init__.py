"""Streams, whose elected consumer runs tasks in order, and dispensers, which hand batches of tasks to workers."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["Assigned", "Consumer", "Done", "GivenBack", "NewTask", "Rebuilt"]
__all__ += ["RunningTask", "Stream", "Submitted", "Task", "TaskDispenser"]
__all__ += ["handler", "submit", "submit_many"]

if TYPE_CHECKING:
    from resourcepool.taskqueue.consumer import Consumer
    from resourcepool.taskqueue.dispenser.dispenser import Done, TaskDispenser
    from resourcepool.taskqueue.dispenser.rebuild import Rebuilt
    from resourcepool.taskqueue.dispenser.validation import Assigned
    from resourcepool.taskqueue.handlers import handler
    from resourcepool.taskqueue.models import Stream, Task
    from resourcepool.taskqueue.running_task import GivenBack, RunningTask
    from resourcepool.taskqueue.submission import NewTask, Submitted, submit, submit_many
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Assigned": "dispenser.validation",
            "Consumer": "consumer",
            "Done": "dispenser.dispenser",
            "GivenBack": "running_task",
            "NewTask": "submission",
            "Rebuilt": "dispenser.rebuild",
            "RunningTask": "running_task",
            "Stream": "models",
            "Submitted": "submission",
            "Task": "models",
            "TaskDispenser": "dispenser.dispenser",
            "handler": "handlers",
            "submit": "submission",
            "submit_many": "submission",
        },
        "timers",
    )
