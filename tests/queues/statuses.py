"""Statuses of queue groups and servers, made without a database."""

from typing import Any

from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus


def server_status(pk: int = 1, **more: Any) -> ServerStatus:
    """Return a living server that has just sent a heartbeat."""
    usual = {"name": "A", "holder": "h", "state": "up", "weight": 1, "labels": {}, "limit": None, "ttl": 60.0}
    return ServerStatus(**{"pk": pk, **usual, "expires_in": 58.0, "registered": 100.0, "idle": None, **more})


def group_status(*servers: ServerStatus, **more: Any) -> QueueGroupStatus:
    usual = {"pk": 1, "name": "orders", "strategy": "sticky", "is_paused": False, "generation": 3, "queues": 2}
    spans = {"heartbeat_every": 5.0, "judge_dead_after": 60.0, "reload_every": 0.2, "handover_timeout": 60.0}
    last = {"assigned": None, "assigned_by": ""}
    return QueueGroupStatus(**{**usual, **spans, **last, "servers": servers, **more})
