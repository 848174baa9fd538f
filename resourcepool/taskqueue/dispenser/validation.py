"""Validation of arguments: keys, scores and assigned tasks."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.dispenser.models import MAX_KEY
from resourcepool.translation import gettext_noop as _

PAIRS = _("tasks returned by assign_tasks, or (key, fence) pairs: a key alone does not identify the assignment")


class Assigned(NamedTuple):
    """A task in a worker's bucket. ``fence`` identifies this assignment."""

    key: str
    fence: int
    score: float


def key(value: object, option: str = "key") -> str:
    """Return a key as stored; raises BadOption if it is neither an integer nor a line of text."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to convert integers of thousands of digits.
        value = str(int(value)) if abs(value) < 10 ** (MAX_KEY - 1) else value
    return options.name(option, value, most=MAX_KEY)


def keys(values: object, option: str = "tasks") -> dict[str, int | None]:
    """Return {key: fence} of assigned tasks or keys; the fence of a key alone is None. Raises BadOption."""
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        raise BadOption(option, values, Sentence(_("a list of keys")))
    fences_by_key: dict[str, int | None] = {}
    for value in values:
        own_key, fence = (value.key, value.fence) if isinstance(value, Assigned) else (value, None)
        fences_by_key[key(own_key, option)] = fence
    return fences_by_key


def scores(mapping: object, option: str = "mapping") -> dict[str, float]:
    """Return {key: score} as stored; raises BadOption, which names the first key that is not allowed."""
    if not isinstance(mapping, Mapping):
        raise BadOption(option, mapping, Sentence(_("a mapping of keys to scores")))
    checked = {key(value, option): score(number, option, {value: number}) for value, number in mapping.items()}
    if len(checked) < len(mapping):  # 1 and "1"
        raise BadOption(
            option, f"{len(mapping)} keys", because=Sentence(_("the same key is given as a number and as text"))
        )
    return checked


def score(value: object, option: str = "priority", shown: object = None) -> float:
    """Return a score as stored; raises BadOption, which shows ``shown`` instead of the value if given."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # an integer too large for a float
        pass
    if shown is not None:
        raise BadOption(option, shown, Sentence(_("a finite number for each key")))
    raise BadOption(option, value, Sentence(_("a finite number")))


def fences(tasks: object, option: str = "tasks") -> dict[str, int]:
    """Return {key: fence} of assigned tasks or (key, fence) pairs; raises BadOption."""
    if isinstance(tasks, str | Mapping) or not isinstance(tasks, Iterable):
        raise BadOption(option, tasks, Sentence(PAIRS))
    fences_by_key: dict[str, int] = {}
    for task in tasks:
        is_pair = isinstance(task, tuple | list) and len(task) in (2, 3)
        if not is_pair or not isinstance(task[1], int) or isinstance(task[1], bool):
            raise BadOption(option, task, Sentence(PAIRS))
        if not 0 <= task[1] < 2**63:  # Python refuses to convert integers of thousands of digits
            raise BadOption(option, f"the fence of {task[0]!r}", Sentence(PAIRS))
        fence = int(task[1])  # also if it is an IntEnum
        if fences_by_key.setdefault(key(task[0], option), fence) != fence:
            raise BadOption(option, task, because=Sentence(_("one fence per task")))
    return fences_by_key
