"""What operators do to queue groups, servers and queues: each is one call of ``queues.administration`` per queue group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations.fields import TextField
from resourcepool.operations.operation import Operation
from resourcepool.queues import administration
from resourcepool.queues.models import MAX_NAME, QueueGroup, Server
from resourcepool.status.queues.alarms import stuck_drains
from resourcepool.status.queues.queue_groups import queue_group
from resourcepool.status.queues.queues import missing_server_hint


@dataclass(frozen=True, kw_only=True)
class QueueOperation(Operation):
    """An operation on rows of one queue group at a time.

    Attributes:
        warnings: sentences about side effects, given the name of the queue group and the values of the fields.
    """

    warnings: Callable[..., Sequence[str]] = lambda _queue_group, **_entered: ()


def queue_group_of(row: Any) -> str:
    """Return the name of the queue group of a server or a queue, or of itself."""
    return str(row.name if isinstance(row, QueueGroup) else row.queue_group.name)


def _ids(queues: Sequence[Any]) -> list[str]:
    return [queue.queue_id for queue in queues]


def _no_run(server: str) -> str:
    alone = administration.name_of_run(server)
    return _("Its name alone, without the number: %(name)s") % {"name": alone} if alone else ""


SERVER = TextField(
    name="server",
    label=_("Server"),
    max_length=MAX_NAME,
    help=_("Its name, without the number: then its next run gets them, too. It need not run now."),
    error_for=_no_run,
)
PAUSE = QueueOperation(
    name="pause",
    button=_("Pause"),
    title=_("Pause (begin no more work on its queues)"),
    effect=_(
        "Its servers begin no more work, within a heartbeat; work that goes on is told to end. Who has which queue"
        " stays as it is, until somebody resumes."
    ),
    do=lambda rows, actor: administration.pause(queue_group_of(rows[0]), by=actor),
    is_offered=lambda queue_group: not queue_group.is_paused,
    done_message=ngettext_lazy("%(count)d was paused.", "%(count)d were paused.", "count"),
)
RESUME = QueueOperation(
    name="resume",
    button=_("Resume"),
    title=_("Resume (end a pause)"),
    effect=_("Its servers begin work again, within a heartbeat."),
    do=lambda rows, actor: administration.resume(queue_group_of(rows[0]), by=actor),
    is_offered=lambda queue_group: bool(queue_group.is_paused),
    done_message=ngettext_lazy("%(count)d was resumed.", "%(count)d were resumed.", "count"),
)
DRAIN = QueueOperation(
    name="drain",
    button=_("Drain"),
    title=_("Drain (hand all its queues to others)"),
    effect=_(
        "The others ask for all its queues and get each when the work on it has ended, or when it is late. The server"
        " goes on running without queues, until somebody ends the drain or it is restarted. Queues that nobody else"
        " may have stay."
    ),
    do=lambda rows, actor: administration.drain(queue_group_of(rows[0]), *map(str, rows), by=actor),
    warnings=lambda name: [alarm.text for alarm in stuck_drains(queue_group(name))],
    is_offered=lambda server: server.state == Server.State.UP,
    done_message=ngettext_lazy(
        "%(count)d is draining: %(names)s.", "%(count)d are draining: %(names)s.", "count"
    ),
)
UNDRAIN = QueueOperation(
    name="undrain",
    button=_("End the drain"),
    title=_("End the drain (give it queues again)"),
    effect=_("It gets its share of the queues again, each when the server that has it has finished its work."),
    do=lambda rows, actor: administration.undrain(queue_group_of(rows[0]), *map(str, rows), by=actor),
    is_offered=lambda server: server.state == Server.State.DRAINING,
    done_message=ngettext_lazy(
        "%(count)d gets queues again: %(names)s.", "%(count)d get queues again: %(names)s.", "count"
    ),
)
PIN = QueueOperation(
    name="pin",
    button=_("Pin"),
    title=_("Pin to a server"),
    effect=_(
        "They go to the server of this name whenever there is one with room for them, and to another while there is"
        " none. Whoever has them now finishes its work first."
    ),
    fields=(SERVER,),
    do=lambda rows, actor, server: administration.pin(queue_group_of(rows[0]), _ids(rows), server, by=actor),
    warnings=lambda name, server: [text for text in [missing_server_hint(name, server)] if text],
    done_message=ngettext_lazy("%(count)d was pinned.", "%(count)d were pinned.", "count"),
)
UNPIN = QueueOperation(
    name="unpin",
    button=_("Unpin"),
    title=_("Unpin (any server may have it)"),
    effect=_("They are shared evenly again. Nothing moves that need not."),
    do=lambda rows, actor: administration.pin(queue_group_of(rows[0]), _ids(rows), "", by=actor),
    is_offered=lambda queue: bool(queue.pin),
    done_message=ngettext_lazy("%(count)d is pinned no more.", "%(count)d are pinned no more.", "count"),
)
REMOVE = QueueOperation(
    name="remove",
    button=_("Remove"),
    title=_("Remove (when its server has finished with it)"),
    effect=_(
        "What nobody has goes at once; the others when their servers have finished their work on them, or are late. It"
        " cannot be undone; added again, a queue begins without its past."
    ),
    permission="delete",
    states=(),  # pages have Django's own button
    do=lambda rows, actor: administration.remove_queues(queue_group_of(rows[0]), _ids(rows), by=actor),
    done_message=ngettext_lazy(
        "%(count)d was removed, or goes when its server has finished with it.",
        "%(count)d were removed, or go when their servers have finished with them.",
        "count",
    ),
)
