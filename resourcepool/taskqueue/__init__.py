"""The task table: streams of ordered tasks, run one after the other by an elected consumer."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resourcepool.taskqueue.consumer import Consumer
    from resourcepool.taskqueue.handlers import handler
    from resourcepool.taskqueue.models import Stream, Task
    from resourcepool.taskqueue.running import GivenBack, RunningTask
    from resourcepool.taskqueue.submitting import NewTask, Submitted, submit, submit_many

WHERE = {
    "Consumer": "consumer",
    "GivenBack": "running",
    "NewTask": "submitting",
    "RunningTask": "running",
    "Stream": "models",
    "Submitted": "submitting",
    "Task": "models",
    "handler": "handlers",
    "submit": "submitting",
    "submit_many": "submitting",
}
__all__ = [
    "Consumer",
    "GivenBack",
    "NewTask",
    "RunningTask",
    "Stream",
    "Submitted",
    "Task",
    "handler",
    "submit",
    "submit_many",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: Django imports this package before there are models."""
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{WHERE[name]}"), name)
