"""Queues assigned to servers: one server at a time works on each, and all share them evenly (document 001)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["HeldQueue", "QueueServer"]

if TYPE_CHECKING:
    from resourcepool.queues.serving.held import HeldQueue
    from resourcepool.queues.serving.server import QueueServer

_HOMES = {"HeldQueue": "resourcepool.queues.serving.held", "QueueServer": "resourcepool.queues.serving.server"}


def __getattr__(name: str) -> Any:
    # Lazy, because Django imports this package before its models may be loaded.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'resourcepool.queues' has no attribute {name!r}")
