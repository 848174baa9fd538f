"""Queues assigned to servers: each queue has one server at a time, and the servers share the queues evenly."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["HeldQueue", "QueueServer"]

if TYPE_CHECKING:
    from resourcepool.queues.serving.held_queue import HeldQueue
    from resourcepool.queues.serving.server import QueueServer
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"HeldQueue": "serving.held_queue", "QueueServer": "serving.server"}
    )
