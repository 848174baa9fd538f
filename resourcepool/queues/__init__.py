"""Queues assigned to servers: each queue has one server at a time, and the servers share the queues evenly."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_getattr

__all__ = ["HeldQueue", "QueueServer"]

if TYPE_CHECKING:
    from resourcepool.queues.serving.held_queue import HeldQueue
    from resourcepool.queues.serving.server import QueueServer

__getattr__ = lazy_getattr(__name__, {"HeldQueue": "serving.held_queue", "QueueServer": "serving.server"})
