"""Handlers of timers, by topic."""

import contextlib
import importlib
from collections.abc import Callable

from django.utils.module_loading import autodiscover_modules

from resourcepool.options import Seconds
from resourcepool.taskqueue.handlers import Registry, Run
from resourcepool.taskqueue.timers.models import MAX_TOPIC

timer_registry = Registry("topic", "topic", MAX_TOPIC)
find = timer_registry.find


def on(topic: str, *, max_runtime: Seconds | None = None) -> Callable[[Run], Run]:
    """Register a function for the timers of one topic; see ``taskqueue.handler`` for its results and ``max_runtime``.

        @timers.on("order.timeout")
        def expire(timer): ...

    It is called with a ``RunningTimer``. A node without a handler for a topic skips its timers.

    Raises:
        BadOption: the topic has another handler already, or a value is not allowed.
    """
    return timer_registry.register(topic, max_runtime)


def discover() -> None:
    """Import the handlers of all installed apps."""
    with contextlib.suppress(ImportError):  # Celery is not installed, so there are no timers for it
        importlib.import_module("resourcepool.celery_timers")
    autodiscover_modules("task_handlers", "timer_handlers")


def topics() -> list[str]:
    """Return the topics for which this process has handlers."""
    return sorted(timer_registry.known)
