"""Checks what callers hand in: keys, scores, and tasks as they were assigned."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue import validators
from resourcepool.taskqueue.dispenser.models import MAX_KEY
from resourcepool.taskqueue.dispenser.statements import Row

PAIRS = _(
    "the tasks that assign_tasks returned, or (key, fence) pairs: a key alone does not say which assignment"
)


class Assigned(NamedTuple):
    """A task in a worker's bucket. ``fence`` belongs to this assignment alone; a later one has another."""

    key: Any
    fence: int
    score: float


Factory = Callable[[str], Any]
RefusedKeys = list[tuple[Row, Exception]]
REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError)  # a factory refuses a key by one of these


def apply_factory(rows: Iterable[Row], factory: Factory) -> tuple[list[tuple[Row, Any]], RefusedKeys]:
    """Return tasks with what ``factory`` makes of their keys, and the tasks that it refuses, with its errors."""
    made: list[tuple[Row, Any]] = []
    refused: RefusedKeys = []
    for row in rows:
        try:
            made.append((row, factory(row.key)))
        except REFUSALS as error:
            refused.append((row, error))
    return made, refused


def assigned_tasks(rows: Iterable[Row], factory: Factory) -> tuple[list[Assigned], RefusedKeys]:
    """Return tasks as callers get them, and the tasks whose keys ``factory`` refuses or changes, with the errors."""
    made, refused = apply_factory(rows, partial(same_key, factory))
    return [Assigned(one, row.fence, row.score) for row, one in made], refused


def same_key(factory: Factory, text: str) -> Any:
    """Return what ``factory`` makes of a key; raises ValueError if that is another key: 7 of "007"."""
    made = factory(text)
    if isinstance(made, int | str) and not isinstance(made, bool) and key(made) != text:
        raise ValueError(f"it makes {made!r} of {text!r}, which is another key")
    return made


def key(value: object, option: str = "key") -> str:
    """Return a key as it is stored; raises BadOption if it is neither a whole number nor a line of text."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python itself refuses to write out a number of thousands of digits.
        value = str(int(value)) if abs(value) < 10 ** (MAX_KEY - 1) else value
    return validators.name(option, value, most=MAX_KEY)


def text_of(value: object, factory: Factory) -> object:
    """Return the text of which ``factory`` makes this key, where that is its ``str``; else the value as it is."""
    if isinstance(value, int | str):
        return value
    try:
        return text if factory(text := str(value)) == value else value
    except Exception:  # noqa: BLE001 (it is no key, and is refused as such)
        return value


def keys(values: object, factory: Factory = str, option: str = "tasks") -> dict[str, int | None]:
    """Return {key: fence} of assigned tasks, or of keys, which say None; raises BadOption."""
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        raise BadOption(option, values, Sentence(_("a list of keys")))
    found: dict[str, int | None] = {}
    for one in values:
        named, fence = (one.key, one.fence) if isinstance(one, Assigned) else (one, None)
        found[key(text_of(named, factory), option)] = fence
    return found


def keys_and_scores(values: object) -> dict[str, float]:
    """Return {key: score} of a mapping, of assigned tasks, or of keys, whose scores are 0; raises BadOption."""
    if isinstance(values, Mapping):
        return scores(values, "tasks")
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        raise BadOption("tasks", values, Sentence(_("a list of keys")))
    of_each = [(one.key, one.score) if isinstance(one, Assigned) else (one, 0.0) for one in values]
    return {key(one, "tasks"): score(number) for one, number in of_each}


def scores(mapping: object, option: str = "mapping") -> dict[str, float]:
    """Return {key: score} as it is stored; raises BadOption, naming the first key that is not allowed."""
    if not isinstance(mapping, Mapping):
        raise BadOption(option, mapping, Sentence(_("a mapping of keys to scores")))
    checked = {key(one, option): score(number, option, {one: number}) for one, number in mapping.items()}
    if len(checked) < len(mapping):  # 1 and "1"
        raise BadOption(
            option, f"{len(mapping)} keys", because=Sentence(_("each key once, as a number or as text"))
        )
    return checked


def score(value: object, option: str = "priority", shown: object = None) -> float:
    """Return a score as it is stored; raises BadOption, which shows ``shown`` in place of the value if it is given."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number that is too large
        pass
    if shown is not None:
        raise BadOption(option, shown, Sentence(_("a finite number for each key")))
    raise BadOption(option, value, Sentence(_("a finite number")))


def factory(value: Factory) -> Factory:
    if not callable(value):
        raise BadOption("factory", value, Sentence(_("a function of the text of a key")))
    return value


def fences(tasks: object, factory: Factory = str, option: str = "tasks") -> dict[str, int]:
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
        fence = int(task[1])  # an enum that is one, too, is written out as a number
        if found.setdefault(key(text_of(task[0], factory), option), fence) != fence:
            raise BadOption(option, task, because=Sentence(_("each task under one fence")))
    return found
