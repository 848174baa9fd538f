"""The registry of handlers: tasks name a type, and the consumer's own code says what runs for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.models import MAX_TYPE

Run = TypeVar("Run", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """What runs for tasks of one type, and for how many seconds at most (None: as long as it takes)."""

    run: Callable[[Any], Any]
    max_runtime: float | None


_known: dict[str, Handler] = {}


def handler(task_type: str, *, max_runtime: object = None) -> Callable[[Run], Run]:
    """Register a function for the tasks of one type.

        @handler("CreateTableSpace", max_runtime=timedelta(minutes=10))
        def create(task): ...

    It is called with a ``RunningTask``. The task is done when it returns, and has failed when it returns False or
    raises. What else it returns is kept as the result, if that is JSON of at most 2,000 characters.

    Args:
        task_type: a line of 1 to 100 characters.
        max_runtime: seconds or timedelta, up to a day, after which the task has failed and the consumer's process
            ends at once: a thread cannot be stopped.

    Raises:
        BadOption: the type has another handler already, or a value is not allowed.
    """
    name = options.text("task_type", task_type, most=MAX_TYPE)
    limit = None if max_runtime is None else options.seconds("max_runtime", max_runtime, least=0.1)

    def register(run: Run) -> Run:
        known = _known.get(name)
        if known is not None and _place(known.run) != _place(run):
            raise BadOption("task_type", name, f"one handler for each type; it has {_place(known.run)}")
        _known[name] = Handler(run, limit)
        return run

    return register


def find(task_type: str) -> Handler | None:
    """Return the handler for this type, if there is one in this process."""
    return _known.get(task_type)


def _place(run: Callable[..., Any]) -> str:
    # A module that is imported again registers the same function anew.
    return f"{run.__module__}.{getattr(run, '__qualname__', run)}"
