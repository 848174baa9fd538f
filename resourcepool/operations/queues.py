"""Operations on queue groups, servers and queues: each is one call of ``queues.administration`` per queue group."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from resourcepool.operations.operation import Operation, TextField
from resourcepool.queues import administration
from resourcepool.queues.models import MAX_NAME, Queue, QueueGroup, Server
from resourcepool.status.queues.queue_groups import queue_group
from resourcepool.status.queues.queues import missing_server_hint
from resourcepool.status.queues.system import stuck_drains
from resourcepool.translation import gettext_lazy as _, ngettext_lazy


@dataclass(frozen=True, kw_only=True)
class QueueOperation(Operation):
    """An operation on rows of one queue group at a time: on all of them, or on none.

    Attributes:
        do: makes the change, given the name of the queue group, the names of its rows, ``by`` (the operator) and the
            values of the fields by name.
        warnings: returns warnings, given the name of the queue group and the values of the fields.
    """

    warnings: Callable[..., Sequence[str]] = lambda _queue_group, **_entered: ()

    def run(self, rows: Any, answers: Mapping[str, Any], actor: str) -> int:
        self.do(queue_group_of(rows[0]), list(map(name_of, rows)), by=actor, **answers)
        return len(rows)

    def warnings_about(self, rows: Any, answers: Mapping[str, Any]) -> Iterable[str]:
        return self.warnings(queue_group_of(rows[0]), **answers)


def by_queue_group(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the rows of each queue group."""
    for _name, group in groupby(sorted(rows, key=queue_group_of), queue_group_of):
        yield list(group)


def queue_group_of(row: Any) -> str:
    """Return the name of the queue group of a server or a queue, or of the queue group itself."""
    return str(row.name if isinstance(row, QueueGroup) else row.queue_group.name)


def name_of(row: Any) -> str:
    """Return the name by which ``queues.administration`` knows a server or a queue."""
    return str(row.queue_id if isinstance(row, Queue) else row)


def _refuse_run(server: str) -> str:
    name = administration.name_of_run(server)
    return _("Enter the name without the number: %(name)s") % {"name": name} if name else ""


SERVER = TextField(
    name="server",
    label=_("Server"),
    max_length=MAX_NAME,
    help=_("The name without the number, so that its next run gets the queues, too. It need not be running."),
    error_for=_refuse_run,
)
PAUSE = QueueOperation(
    name="pause",
    button=_("Pause"),
    title=_("Pause (start no more work on its queues)"),
    effect=_(
        "Its servers start no new work from their next heartbeat on, and should finish running work. Assignments stay"
        " until the queue group is resumed."
    ),
    do=lambda name, _names, by: administration.pause(name, by=by),
    is_offered=lambda queue_group: not queue_group.is_paused,
    done_message=ngettext_lazy("%(what)s was paused.", "%(what)s were paused.", "count"),
)
RESUME = QueueOperation(
    name="resume",
    is_harmless=True,
    button=_("Resume"),
    title=_("Resume (end a pause)"),
    effect=_("Its servers start work again from their next heartbeat on."),
    do=lambda name, _names, by: administration.resume(name, by=by),
    is_offered=lambda queue_group: bool(queue_group.is_paused),
    done_message=ngettext_lazy("%(what)s was resumed.", "%(what)s were resumed.", "count"),
)
DRAIN = QueueOperation(
    name="drain",
    button=_("Drain"),
    title=_("Drain (hand all its queues over to other servers)"),
    effect=_(
        "Other servers get each of its queues once the work on it has ended or the hand-over has timed out. The server"
        " keeps running without queues until the drain is ended or it is restarted. Queues that no other server may"
        " have stay."
    ),
    do=lambda name, servers, by: administration.drain(name, *servers, by=by),
    warnings=lambda name: [alarm.text for alarm in stuck_drains(queue_group(name))],
    is_offered=lambda server: server.state == Server.State.UP,
    done_message=ngettext_lazy(
        "%(count)d is draining: %(names)s.", "%(count)d are draining: %(names)s.", "count"
    ),
)
UNDRAIN = QueueOperation(
    name="undrain",
    is_harmless=True,
    button=_("End the drain"),
    title=_("End the drain (give it queues again)"),
    effect=_("It gets its share of the queues again, each when its present server has finished work on it."),
    do=lambda name, servers, by: administration.undrain(name, *servers, by=by),
    is_offered=lambda server: server.state == Server.State.DRAINING,
    done_message=ngettext_lazy(
        "%(count)d is no longer draining: %(names)s.", "%(count)d are no longer draining: %(names)s.", "count"
    ),
)
PIN = QueueOperation(
    name="pin",
    button=_("Pin"),
    title=_("Pin to a server"),
    effect=_(
        "They go to the server of this name whenever it is running and has room, otherwise to other servers. Their"
        " present servers finish their work first."
    ),
    fields=(SERVER,),
    do=lambda name, queues, server, by: administration.pin(name, queues, server, by=by),
    warnings=lambda name, server: [text for text in [missing_server_hint(name, server)] if text],
    done_message=ngettext_lazy("%(what)s was pinned.", "%(what)s were pinned.", "count"),
)
UNPIN = QueueOperation(
    name="unpin",
    is_harmless=True,
    button=_("Unpin"),
    title=_("Unpin (any server may have it)"),
    effect=_("They are balanced across all servers again, moving as few as possible."),
    do=lambda name, queues, by: administration.pin(name, queues, "", by=by),
    is_offered=lambda queue: bool(queue.pin),
    done_message=ngettext_lazy("%(what)s was unpinned.", "%(what)s were unpinned.", "count"),
)
REMOVE = QueueOperation(
    name="remove",
    is_destructive=True,
    button=_("Remove"),
    title=_("Remove (once its server has finished working on it)"),
    effect=_(
        "Unowned queues are removed now; others once their server finishes or times out. This cannot be undone; a queue"
        " that is added again starts without history."
    ),
    permission="delete",
    states=(),  # pages have Django's own button
    do=lambda name, queues, by: administration.remove_queues(name, queues, by=by),
    done_message=ngettext_lazy(
        "%(what)s was removed, or will be once its server has finished.",
        "%(what)s were removed, or will be once their servers have finished.",
        "count",
    ),
)
