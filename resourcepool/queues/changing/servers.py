"""Servers that operators drain, by name, or name and number."""

import re
from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import listed
from resourcepool.queues.changing.change import change
from resourcepool.queues.models import Server, TaskType
from resourcepool.queues.planning.changes import Worker
from resourcepool.queues.queries import read_workers, using_of_queues


def drain(task_type: str, *servers: str, by: str = "") -> list[str]:
    """Make servers give up all their queues and get no more, while they stay. Returns their names and numbers.

    Args:
        servers: names (each means all that have it), or name and number, such as "web-3 #17".
    """
    return _set_state(task_type, servers, Server.State.DRAINING, by)


def undrain(task_type: str, *servers: str, by: str = "") -> list[str]:
    """Let drained servers get queues again; see ``drain``."""
    return _set_state(task_type, servers, Server.State.UP, by)


def name_of_run(server: str) -> str:
    """Return "web-3" for "web-3 #17", which is one run of it; otherwise "", also if a server has just that name."""
    if not (run := re.fullmatch(r"(.+) #([0-9]{1,18})", server)):
        return ""
    servers = Server.objects.using(using_of_queues())
    is_name = servers.filter(name=server).exists() and not servers.filter(name=run[1], pk=run[2]).exists()
    return "" if is_name else run[1]


def named(workers: Sequence[Worker], names: Sequence[str]) -> dict[int, str]:
    """Return the living servers of these names, or names and numbers, by key; raises BadOption."""
    living = [worker.member for worker in workers if worker.is_alive]
    found: dict[int, str] = {}
    for name in names:
        so_called = {member.pk: str(member) for member in living if name in (member.name, str(member))}
        if not so_called:
            if not living:
                raise BadOption("server", name, because=Sentence(_("there is no server now")))
            there_are = sorted({member.name for member in living})
            raise BadOption("server", name, Sentence(_("one of %(names)s"), names=listed(there_are)))
        found |= so_called
    return found


def _set_state(task_type: str, servers: Sequence[str], state: Server.State, by: str) -> list[str]:
    changed: list[str] = []

    def put(using: str, locked: TaskType) -> None:
        found = named(read_workers(locked, using), servers)
        Server.objects.using(using).filter(pk__in=found).update(state=state)
        changed[:] = found.values()

    change(task_type, by, put)
    return changed
