"""Puts keys into a pool: each is new, has another score, or is left as it is."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.taskqueue.dispenser import statements
from resourcepool.taskqueue.dispenser.models import DispenserTask
from resourcepool.taskqueue.table import BATCH, insert

Key = TypeVar("Key")
Value = TypeVar("Value")
State = DispenserTask.State
COLUMNS = ("key", "pk", "state", "fence", "score", "finished_at")


class Known(NamedTuple):
    """What there is of a key already."""

    pk: int
    state: str
    fence: int
    score: float
    finished_at: Any


class Put(NamedTuple):
    """How many keys of each kind there were; ``ignored``: finished or failed."""

    added: int = 0
    changed: int = 0
    kept: int = 0
    assigned: int = 0
    ignored: int = 0

    def __add__(self, other: Any) -> "Put":
        return Put(*(one + more for one, more in zip(self, other, strict=True)))


def chunks(values: Mapping[Key, Value], size: int = BATCH) -> Iterator[dict[Key, Value]]:
    """Cut them into pieces, each of which is written at once."""
    items = iter(values.items())
    while part := dict(islice(items, size)):
        yield part


def known(connection: BaseDatabaseWrapper, dispenser: str, scores: Mapping[str, float]) -> dict[str, Known]:
    """Return what there is of these keys, without locking it."""
    rows = DispenserTask.objects.using(connection.alias).filter(dispenser_id=dispenser, key__in=list(scores))
    return {key: Known(*rest) for key, *rest in rows.values_list(*COLUMNS)}


def put(
    connection: BaseDatabaseWrapper,
    dispenser: str,
    scores: Mapping[str, float],
    there: Mapping[str, Known],
    is_new_work: Callable[[datetime.datetime], bool] = lambda _: True,
) -> Put:
    """Put a chunk of keys into the pool, inside a transaction; repeating it does nothing more.

    Args:
        there: what ``known`` said of these keys.
        is_new_work: whether a key that finished at this moment is new work.
    """
    again, rescored, new = {}, {}, []
    kept = assigned = ignored = 0
    for key, score in scores.items():
        one = there.get(key)
        if one is None:
            new.append((key, score))
        elif one.state == State.READY:
            if one.score == score:
                kept += 1
            else:
                rescored[one.pk] = score
        elif one.state == State.ASSIGNED:
            assigned += 1
        elif one.state != State.FAILED and is_new_work(one.finished_at):
            again[one.pk] = one.fence
            new.append((key, score))
        else:
            ignored += 1
    # A new row in place of the finished one: it has arrived now, and its fence is above all former ones.
    for state in (State.DONE, State.DISCARDED) if again else ():
        statements.retire(connection, again, state)
    blank = DispenserTask(dispenser_id=dispenser)
    added = insert(connection, blank, ("key", "score"), new) if new else 0
    changed = statements.rescore(connection, rescored) if rescored else 0
    assigned += len(rescored) - changed + len(new) - added
    return Put(added, changed, kept, assigned, ignored)
