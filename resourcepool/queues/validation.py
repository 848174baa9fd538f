"""Validates operators' input for queues: ids, parameters, labels."""

from collections import Counter
from collections.abc import Mapping, Sequence

from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.dialect import DbMicros, DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.ids import MOST_AT_ONCE
from resourcepool.queues.labels import labels_of
from resourcepool.queues.models import MAX_PARAMETER, MAX_QUEUE_ID, Queue, TaskType

MOST_SHOWN = 5


def checked_ids(queue_ids: Sequence[str]) -> list[str]:
    """Return these ids if each is valid and occurs once; raises BadOption."""
    checked = [options.text("queue", each, most=MAX_QUEUE_ID) for each in queue_ids]
    if twice := sorted(each for each, count in Counter(checked).items() if count > 1):
        raise BadOption("queue", twice[:MOST_SHOWN], Sentence(_("each queue once")))
    if len(checked) > MOST_AT_ONCE:
        raise BadOption(
            "queue", f"{len(checked)} of them", Sentence(_("at most %(count)s at once"), count=MOST_AT_ONCE)
        )
    return checked


def new_queues(
    task_type: TaskType, queue_ids: Sequence[str], parameter: str, labels: Mapping[str, str] | None
) -> list[Queue]:
    """Return new, unsaved queues of a task type whose row is locked; raises BadOption."""
    ids, needed = checked_ids(queue_ids), labels_of(labels)
    if ranges := [each for each in ids if ".." in each]:
        raise BadOption(
            "queue",
            ranges[:MOST_SHOWN],
            Sentence(_("no two dots in it; a range is such as 0..63 or eu-00..15")),
        )
    # Higher than any fence of a removed queue of the same name: by the clock also if its task type was created
    # again, by the generation also where the clock stands still between two changes.
    fence = DbMicros() + task_type.generation
    of_each = {
        "task_type": task_type,
        "parameter": checked_parameter(parameter),
        "labels": needed,
        "fence": fence,
        "since": DbNow(),
    }
    return [Queue(queue_id=each, **of_each) for each in ids]


def checked_parameter(parameter: str) -> str:
    """Return it if it is not too long; raises BadOption."""
    if len(parameter) > MAX_PARAMETER:
        raise BadOption(
            "parameter", parameter, Sentence(_("text of at most %(count)s characters"), count=MAX_PARAMETER)
        )
    return parameter
