"""The registry of handlers: the code that runs for tasks of a type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.options import Seconds
from resourcepool.taskqueue.models import MAX_TYPE

Run = TypeVar("Run", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler function, and how many seconds it may run; None: no limit."""

    run: Callable[[Any], Any]
    max_runtime: float | None


class Registry:
    """The handlers of this process, by task type or topic."""

    def __init__(self, option: str, most: int) -> None:
        """Create an empty registry; ``option``: the argument's name, for errors; ``most``: maximum length of a name."""
        self.known: dict[str, Handler] = {}
        self._option, self._most = option, most

    def find(self, name: str) -> Handler | None:
        return self.known.get(name)

    def register(self, name: object, max_runtime: object) -> Callable[[Run], Run]:
        """Return a decorator that registers a function under this name; raises BadOption."""
        name = options.text(self._option, name, most=self._most)
        limit = None if max_runtime is None else options.seconds("max_runtime", max_runtime, least=0.1)

        def register(run: Run) -> Run:
            known = self.known.get(name)
            if known is not None and _place(known.run) != _place(run):
                raise BadOption(self._option, name, because=f"one handler for each; it has {_place(known.run)}")
            self.known[name] = Handler(run, limit)
            return run

        return register


task_registry = Registry("task_type", MAX_TYPE)
find = task_registry.find


def handler(task_type: str, *, max_runtime: Seconds | None = None) -> Callable[[Run], Run]:
    """Register a function for the tasks of one type.

        @handler("CreateTableSpace", max_runtime=timedelta(minutes=10))
        def create(task): ...

    It is called with a ``RunningTask``. The task is done when the function returns, and has failed when it returns
    False or raises. Another return value is kept as the result if it is JSON of at most 2,000 characters.

    Args:
        task_type: a line of 1 to 100 characters.
        max_runtime: seconds or timedelta, up to a day. After this time the task has failed and the consumer's process
            exits at once, because a thread cannot be stopped.

    Raises:
        BadOption: the type has another handler already, or a value is not allowed.
    """
    return task_registry.register(task_type, max_runtime)


def _place(run: Callable[..., Any]) -> str:
    # A module that is imported again registers the same function again.
    return f"{run.__module__}.{getattr(run, '__qualname__', run)}"
