"""Queues that operators add, change, remove and pin."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.dialect import DbMicros, DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import labels_of, printable
from resourcepool.leases.short_transactions import locked_row
from resourcepool.queues import moving
from resourcepool.queues.changing.change import change
from resourcepool.queues.changing.servers import name_of_run
from resourcepool.queues.ids import MOST_SHOWN, checked_ids, known
from resourcepool.queues.models import MAX_NAME, MAX_PARAMETER, Queue, TaskType


def add_queues(
    task_type: str,
    queue_ids: Sequence[str],
    *,
    parameter: str = "",
    labels: Mapping[str, str] | None = None,
    by: str = "",
) -> int:
    """Add queues to a task type; its servers share them at once. Returns how many."""
    keys: list[int] = []

    def add(using: str, locked: TaskType) -> None:
        rows, added = Queue.objects.using(using), new_queues(locked, queue_ids, parameter, labels)
        ids = [queue.queue_id for queue in added]
        there_are = rows.filter(task_type=locked, queue_id__in=ids).values_list("queue_id", flat=True)
        if there := sorted(there_are):
            one = Sentence(_("%(task_type)s has it already"), task_type=printable(locked.name))
            several = Sentence(_("%(task_type)s has them already"), task_type=printable(locked.name))
            raise BadOption("queue", there[:MOST_SHOWN], because=one if len(there) == 1 else several)
        rows.bulk_create(added)
        keys[:] = rows.filter(task_type=locked, queue_id__in=ids).values_list("pk", flat=True)

    change(task_type, by, add, settle=lambda rows: bool(keys) and rows.filter(pk__in=keys).exists())
    return len(queue_ids)


def change_queues(
    task_type: str,
    queue_ids: Sequence[str],
    *,
    parameter: str | None = None,
    labels: Mapping[str, str] | None = None,
    by: str = "",
) -> int:
    """Give queues another parameter or other labels (None: unchanged); their servers learn of it with their next look.

    Returns:
        The number of queues.
    """
    changed: dict[str, Any] = {} if labels is None else {"labels": labels_of(labels)}
    if parameter is not None:
        changed["parameter"] = _parameter(parameter)
    if not changed:
        raise BadOption(
            "queue", list(queue_ids)[:MOST_SHOWN], because=Sentence(_("with another parameter or other labels"))
        )
    change(task_type, by, lambda using, locked: _found(using, locked, queue_ids).update(**changed))
    return len(queue_ids)


def remove_queues(task_type: str, queue_ids: Sequence[str], *, by: str = "") -> int:
    """Remove queues: those without an owner at once, the others when their servers have finished with them."""
    keys: list[int] = []

    def retire(using: str, locked: TaskType) -> None:
        rows = _found(using, locked, queue_ids)
        keys[:] = rows.values_list("pk", flat=True)
        rows.update(is_retiring=True, req_server=None, requested_at=Coalesce(F("requested_at"), DbNow()))

    def is_done(rows: Any) -> bool:
        return bool(keys) and not rows.filter(pk__in=keys, is_retiring=False).exists()

    change(task_type, by, retire, settle=is_done)
    return len(queue_ids)


def pin(task_type: str, queue_ids: Sequence[str], server: str, *, by: str = "") -> int:
    """Assign these queues to the server of that name whenever there is one; "" ends that. Returns how many.

    Raises:
        BadOption: also for "web-3 #17", because a pin names all runs, not one.
    """
    name = server and options.text("server", server, most=MAX_NAME)
    if alone := name_of_run(name):
        raise BadOption("server", name, Sentence(_("its name alone, without the number: %(name)s"), name=alone))
    change(task_type, by, lambda using, locked: _found(using, locked, queue_ids).update(pin=name))
    return len(queue_ids)


def new_queues(
    task_type: TaskType, queue_ids: Sequence[str], parameter: str, labels: Mapping[str, str] | None
) -> list[Queue]:
    """Return new, unsaved queues of a task type whose row is locked; raises BadOption."""
    ids, needed = checked_ids(queue_ids), labels_of(labels)
    if ranges := [each for each in ids if ".." in each]:
        allowed = Sentence(_("no two dots in it; a range is such as 0..63 or eu-00..15"))
        raise BadOption("queue", ranges[:MOST_SHOWN], because=allowed)
    # Higher than any fence of a removed queue of the same name: by the clock also if its task type was created
    # again, by the generation also where the clock stands still between two changes.
    fence = DbMicros() + task_type.generation
    of_each = {"parameter": _parameter(parameter), "labels": needed, "fence": fence, "since": DbNow()}
    return [Queue(task_type=task_type, queue_id=each, **of_each) for each in ids]


def _parameter(parameter: str) -> str:
    if len(parameter) > MAX_PARAMETER:
        raise BadOption(
            "parameter", parameter, Sentence(_("text of at most %(count)s characters"), count=MAX_PARAMETER)
        )
    return parameter


def _found(using: str, task_type: TaskType, queue_ids: Sequence[str]) -> Any:
    checked = checked_ids(queue_ids)
    rows = Queue.objects.using(using).filter(task_type=task_type, queue_id__in=checked)
    keys = known(task_type.name, checked, dict(rows.values_list("queue_id", "pk")))
    # Waiting for a row here would keep the servers from planning and handing over, for longer than some may live.
    if len(moving.unlocked(using, keys)) < len(keys):
        raise locked_row(using)
    return rows
