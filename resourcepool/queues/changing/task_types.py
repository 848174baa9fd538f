"""Task types that operators create, pause and resume."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, transaction
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.changing.change import change
from resourcepool.queues.changing.queues import new_queues
from resourcepool.queues.models import MAX_NAME, Queue, TaskType
from resourcepool.queues.queries import using_of_queues


def create(
    name: str,
    queue_ids: Sequence[str] = (),
    *,
    parameter: str = "",
    labels: Mapping[str, str] | None = None,
    by: str = "",
    **settings: Any,
) -> TaskType:
    """Create a task type with these queues.

    Args:
        settings: ``strategy``, ``heartbeat_every``, ``judge_dead_after``, ``reload_every``, ``drain_within``.
    """
    using = using_of_queues()
    found = TaskType(name=options.text("task_type", name, most=MAX_NAME), **settings)

    def work() -> None:
        found.pk = None
        with transaction.atomic(using=using):
            rows = new_queues(found, queue_ids, parameter, labels)
            _validate(found, using)
            found.save(using=using, force_insert=True)
            Queue.objects.using(using).bulk_create(rows)

    def settle() -> None:
        if not TaskType.objects.using(using).filter(pk=found.pk, name=found.name).exists():
            raise Unsettled

    retrying(connections[using], work, settle=settle)
    return found


def pause(task_type: str, *, by: str = "") -> None:
    """Let the servers begin no more work on the queues of a task type, within a heartbeat; owners stay."""
    _set_paused(task_type, True, by)


def resume(task_type: str, *, by: str = "") -> None:
    """End ``pause``."""
    _set_paused(task_type, False, by)


def _set_paused(task_type: str, is_paused: bool, by: str) -> None:
    rows = TaskType.objects.using(using_of_queues()).filter(name=task_type)
    change(task_type, by, lambda *_: rows.update(is_paused=is_paused))


def _validate(task_type: TaskType, using: str) -> None:
    """Raise BadOption for the first setting of ``task_type`` that is not allowed."""
    try:
        task_type.full_clean(exclude={"name"})
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            raise BadOption(name, getattr(task_type, name, ""), because=" ".join(messages)) from None
    if TaskType.objects.using(using).filter(name=task_type.name).exists():
        raise BadOption("task_type", task_type.name, because=Sentence(_("there is one of this name already")))
