"""Shared by the tests of ``resourcepool_queues``."""

from typing import Any

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import QueueGroup, Server
from resourcepool.queues import reassignment
from tests.management.command_runner import Ran, run

HOSTILE = "\x1b[31mred\x07"


def queues(*words: Any) -> Ran:
    return run("queues", *words)


def server(made: QueueGroup, name: str = "A", **more: Any) -> Server:
    """A server that lives, without a process behind it; it gets its queues with the next plan."""
    about = {"ttl": 600, "busy_before": DbLater(600), "registered_at": DbNow(), "idle_since": DbNow()}
    found: Server = Server.objects.create(queue_group=made, name=name, fence=1, **{**about, **more})
    return found


def planned(made: QueueGroup) -> None:
    reassignment.reassign("default", made.pk, "the test")
