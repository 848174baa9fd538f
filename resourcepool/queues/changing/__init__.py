"""Operators' changes to task types, queues and servers. ``by``: who makes it, for the history.

All raise BadOption, DatabaseUnavailable and NotMigrated; nothing is half done.
"""

from resourcepool.queues.changing.previewing import preview
from resourcepool.queues.changing.queues import add_queues, change_queues, pin, remove_queues
from resourcepool.queues.changing.servers import drain, name_of_run, undrain
from resourcepool.queues.changing.task_types import create, pause, resume

__all__ = [
    "add_queues",
    "change_queues",
    "create",
    "drain",
    "name_of_run",
    "pause",
    "pin",
    "preview",
    "remove_queues",
    "resume",
    "undrain",
]
