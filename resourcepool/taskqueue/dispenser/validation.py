"""Validation of arguments: keys, scores and assigned tasks; and conversion of keys by the caller's factory."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.dispenser.models import MAX_KEY
from resourcepool.taskqueue.dispenser.statements import Row
from resourcepool.translation import gettext_noop as _

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default before Python 3.13; needed by type checkers only

    K = TypeVar("K", default=str)
else:
    from typing import TypeVar

    K = TypeVar("K")

PAIRS = _("tasks returned by assign_tasks, or (key, fence) pairs: a key alone does not identify the assignment")


class Assigned(NamedTuple, Generic[K]):
    """A task in a worker's bucket. ``fence`` identifies this assignment."""

    key: K
    fence: int
    score: float


Factory = Callable[[str], Any]
RefusedKeys = list[tuple[Row, Exception]]
REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError)  # by which a factory refuses a key


def apply_factory(rows: Iterable[Row], factory: Factory) -> tuple[list[tuple[Row, Any]], RefusedKeys]:
    """Return tasks with their converted keys, and the tasks whose keys ``factory`` refuses, with the errors."""
    made: list[tuple[Row, Any]] = []
    refused: RefusedKeys = []
    for row in rows:
        try:
            made.append((row, factory(row.key)))
        except REFUSALS as error:
            refused.append((row, error))
    return made, refused


def assigned_tasks(rows: Iterable[Row], factory: Factory) -> tuple[list[Assigned[Any]], RefusedKeys]:
    """Return tasks for callers, and the tasks whose keys ``factory`` refuses or changes, with the errors."""
    made, refused = apply_factory(rows, partial(same_key, factory))
    return [Assigned(key, row.fence, row.score) for row, key in made], refused


def same_key(factory: Factory, text: str) -> Any:
    """Return the converted key; raises ValueError if it is another key, such as 7 for "007"."""
    made = factory(text)
    if isinstance(made, int | str) and not isinstance(made, bool) and key(made) != text:
        raise ValueError(f"it converts {text!r} to {made!r}, which is another key")
    return made


def key(value: object, option: str = "key") -> str:
    """Return a key as stored; raises BadOption if it is neither an integer nor a line of text."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to convert integers of thousands of digits.
        value = str(int(value)) if abs(value) < 10 ** (MAX_KEY - 1) else value
    return options.name(option, value, most=MAX_KEY)


def text_of(value: object, factory: Factory) -> object:
    """Return ``str(value)`` if ``factory`` converts that to ``value``; else the value itself."""
    if isinstance(value, int | str):
        return value
    try:
        return text if factory(text := str(value)) == value else value
    except Exception:  # noqa: BLE001 (not a key; refused later)
        return value


def keys(values: object, factory: Factory = str, option: str = "tasks") -> dict[str, int | None]:
    """Return {key: fence} of assigned tasks or keys; the fence of a key alone is None. Raises BadOption."""
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        raise BadOption(option, values, Sentence(_("a list of keys")))
    fences_by_key: dict[str, int | None] = {}
    for value in values:
        own_key, fence = (value.key, value.fence) if isinstance(value, Assigned) else (value, None)
        fences_by_key[key(text_of(own_key, factory), option)] = fence
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


def factory(value: Factory) -> Factory:
    if not callable(value):
        raise BadOption("factory", value, Sentence(_("a function that takes the text of a key")))
    return value


def fences(tasks: object, factory: Factory = str, option: str = "tasks") -> dict[str, int]:
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
        if fences_by_key.setdefault(key(text_of(task[0], factory), option), fence) != fence:
            raise BadOption(option, task, because=Sentence(_("one fence per task")))
    return fences_by_key
