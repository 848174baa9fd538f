"""Checks what callers hand in: keys, scores, and tasks as they were assigned."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import checking
from resourcepool.taskqueue.dispenser.models import MAX_KEY
from resourcepool.taskqueue.dispenser.statements import Row

PAIRS = _(
    "the tasks that assign_tasks returned, or (key, fence) pairs: a key alone does not say which assignment"
)


class Assigned(NamedTuple):
    """A task in a worker's bucket. ``fence`` is of this assignment alone: whoever has the task later has another."""

    key: Any
    fence: int
    score: float


def assigned(
    rows: Iterable[Row], factory: Callable[[str], Any]
) -> tuple[list[Assigned], list[tuple[Row, Exception]]]:
    """Return tasks as callers get them, and those whose key ``factory`` refuses, each with its error."""
    told: list[Assigned] = []
    refused: list[tuple[Row, Exception]] = []
    for row in rows:
        try:
            told.append(Assigned(factory(row.key), row.fence, row.score))
        except (ValueError, TypeError, ArithmeticError) as error:
            refused.append((row, error))
    return told, refused


def key(value: object, option: str = "key") -> str:
    """Return a key as it is stored; raises BadOption if it is neither a whole number nor a line of text."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python itself refuses to write out a number of thousands of digits.
        value = str(value) if abs(value) < 10 ** (MAX_KEY - 1) else value
    return checking.name(option, value, most=MAX_KEY)


def keys(values: object, option: str = "tasks") -> set[str]:
    """Return these keys, or those of assigned tasks; raises BadOption."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise BadOption(option, values, Sentence(_("a list of keys")))
    return {key(one.key if isinstance(one, Assigned) else one, option) for one in values}


def scores(mapping: object, option: str = "mapping") -> dict[str, float]:
    """Return {key: score} as it is stored; raises BadOption, naming the first key that is not allowed."""
    if not isinstance(mapping, Mapping):
        raise BadOption(option, mapping, Sentence(_("a mapping of keys to scores")))
    checked = {}
    for one, score in mapping.items():
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if not is_number or not -math.inf < score < math.inf:
            raise BadOption(option, {one: score}, Sentence(_("a finite number")))
        try:
            checked[key(one, option)] = float(score)
        except OverflowError:
            raise BadOption(option, {one: score}, Sentence(_("a finite number"))) from None
    if len(checked) < len(mapping):  # 1 and "1"
        raise BadOption(option, f"{len(mapping)} keys", Sentence(_("each key once, as a number or as text")))
    return checked


def fences(tasks: object, option: str = "tasks") -> dict[str, int]:
    """Return {key: fence} of tasks as they were assigned, or of (key, fence) pairs; raises BadOption."""
    if isinstance(tasks, str | Mapping) or not isinstance(tasks, Iterable):
        raise BadOption(option, tasks, Sentence(PAIRS))
    found: dict[str, int] = {}
    for task in tasks:
        is_pair = isinstance(task, tuple | list) and len(task) in (2, 3)
        if not is_pair or not isinstance(task[1], int) or isinstance(task[1], bool):
            raise BadOption(option, task, Sentence(PAIRS))
        if not 0 <= task[1] < 2**63:  # Python itself refuses to write out a number of thousands of digits
            raise BadOption(option, f"a fence for {task[0]!r}", Sentence(PAIRS))
        if found.setdefault(key(task[0], option), task[1]) != task[1]:
            raise BadOption(option, task, Sentence(_("each task under one fence")))
    return found
