"""Queues assigned to servers: one server at a time works on each, and all share them evenly (document 001)."""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazily

__all__ = ["HeldQueue", "QueueServer"]

if TYPE_CHECKING:
    from resourcepool.queues.serving.held import HeldQueue
    from resourcepool.queues.serving.server import QueueServer

__getattr__ = lazily(__name__, {"HeldQueue": "serving.held", "QueueServer": "serving.server"})
