"""Adds keys to a pool, or makes the pool equal to a mapping.

A rebuild is a diff in one transaction. To clear the pool and fill it again would leave it empty meanwhile, and would
bring back tasks that were assigned or done since the mapping was computed.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from resourcepool import options
from resourcepool.db.dialect import DbNow, aware, for_project, from_columns, in_columns, read_clock
from resourcepool.db.receipts import commit_once
from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched, insert_many
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.abstract import CHUNK as BATCH
from resourcepool.taskqueue.dispenser import statements
from resourcepool.taskqueue.dispenser.bucket_lifecycle import make_dispenser
from resourcepool.taskqueue.dispenser.models import Dispenser, DispenserTask
from resourcepool.translation import gettext_noop as _

Key = TypeVar("Key")
Value = TypeVar("Value")
State = DispenserTask.State
CHUNK = 500  # rows in a statement
IDLE_TIMEOUT = 60  # seconds, integer, between two statements: comparing a million keys takes some
COLUMNS = ("key", "pk", "state", "fence", "score", "finished_at")


class Known(NamedTuple):
    """The existing task of a key."""

    pk: int
    state: str
    fence: int
    score: float
    finished_at: Any


class Rebuilt(NamedTuple):
    """The result of a rebuild, in numbers of keys.

    Attributes:
        added, changed, kept: ready now: new ones, those with a new score, and unchanged ones.
        assigned: in the buckets of workers.
        ignored: finished after the mapping was computed, or failed.
        retired: removed from the pool, because the mapping does not contain them.
        is_outdated: nothing was done, because a mapping computed later was applied already.
    """

    added: int = 0
    changed: int = 0
    kept: int = 0
    assigned: int = 0
    ignored: int = 0
    retired: int = 0
    is_outdated: bool = False

    def plus(self, more: "Rebuilt") -> "Rebuilt":
        """Add the counts of another part of the mapping."""
        names = ("added", "changed", "kept", "assigned", "ignored", "retired")
        return self._replace(**{name: getattr(self, name) + getattr(more, name) for name in names})


def chunks(values: Mapping[Key, Value], size: int = BATCH) -> Iterator[dict[Key, Value]]:
    """Split a mapping into chunks, each of which is written at once."""
    return map(dict, batched(values.items(), size))


def read_known(
    connection: BaseDatabaseWrapper, dispenser: str, scores: Mapping[str, float]
) -> dict[str, Known]:
    """Return the existing tasks of these keys, without locking them."""
    rows = DispenserTask.objects.using(connection.alias).filter(dispenser_id=dispenser, key__in=list(scores))
    return {key: Known(*rest) for key, *rest in rows.values_list(*COLUMNS)}


def put(
    connection: BaseDatabaseWrapper,
    dispenser: str,
    scores: Mapping[str, float],
    is_new_work: Callable[[datetime.datetime], bool] = lambda _: True,
) -> Rebuilt:
    """Put a chunk of keys into the pool, inside a transaction.

    Args:
        is_new_work: whether a key that finished at this moment is new work.
    """
    existing = read_known(connection, dispenser, scores)
    again, rescored, new = {}, {}, []
    kept = assigned = ignored = 0
    for key, score in scores.items():
        task = existing.get(key)
        if task is None:
            new.append((key, score))
        elif task.state == State.READY:
            if task.score == score:
                kept += 1
            else:
                rescored[task.pk] = score
        elif task.state == State.ASSIGNED:
            assigned += 1
        elif task.state != State.FAILED and is_new_work(task.finished_at):
            again[task.pk] = task.fence
            new.append((key, score))
        else:
            ignored += 1
    # A new row replaces the finished one: it is added now, and its fence is above all former ones.
    for state in (State.DONE, State.DISCARDED) if again else ():
        statements.retire(connection, again, state)
    blank = DispenserTask(dispenser_id=dispenser)
    added = insert_many(connection, blank, ("key", "score"), new) if new else 0
    changed = statements.rescore(connection, rescored) if rescored else 0
    assigned += len(rescored) - changed + len(new) - added
    return Rebuilt(added, changed, kept, assigned, ignored)


def rebuild(
    using: str, dispenser: str, scores: Mapping[str, float], as_of: datetime.datetime | None
) -> Rebuilt:
    """Make the pool equal to ``scores``, except for assigned tasks and tasks finished since ``as_of``."""
    began = None if as_of is None else aware(options.moment("as_of", as_of))
    make_dispenser(using, dispenser)
    if began is not None:
        _check(using, dispenser, began)
    connection = connections[using]
    return commit_once(connection, partial(_diff, connection, dispenser, scores, began), idle=IDLE_TIMEOUT)


def clock(connection: BaseDatabaseWrapper) -> datetime.datetime:
    return from_columns(retrying(connection, partial(read_clock, connection)), connection)


def _check(using: str, dispenser: str, as_of: datetime.datetime) -> None:
    connection = connections[using]
    now = clock(connection)
    rows = Dispenser.objects.using(using).filter(pk=dispenser).values_list("done_kept", flat=True)
    kept = retrying(connection, rows.get)
    if as_of > now:
        allowed = _("a time that is not in the future by the database clock (TaskDispenser.now())")
        raise BadOption("as_of", as_of, Sentence(allowed))
    if (now - as_of).total_seconds() > kept:
        allowed = _("a time within the last %(span)s: finished tasks are kept no longer")
        raise BadOption("as_of", as_of, Sentence(allowed, span=options.duration_text(kept)))


def _diff(
    connection: BaseDatabaseWrapper,
    dispenser: str,
    scores: Mapping[str, float],
    as_of: datetime.datetime | None,
) -> Rebuilt:
    def is_new_work(finished_at: datetime.datetime) -> bool:
        return bool(as_of and from_columns(finished_at, connection) < as_of)

    row = Dispenser.objects.using(connection.alias).filter(pk=dispenser)
    # The update locks the row: rebuilds run one after another, and an older mapping is refused.
    moment = in_columns(for_project(as_of), connection) if as_of else None
    latest = row.filter(Q(as_of=None) | Q(as_of__lte=moment)) if as_of else row
    if not latest.update(rebuilt_at=DbNow(), **({"as_of": moment} if as_of else {})):
        return Rebuilt(is_outdated=True)
    rest, rescored, missing, kept = dict(scores), {}, {}, 0
    for task in statements.ready(connection, dispenser):
        score = rest.pop(task.key, None)
        if score is None:
            missing[task.pk] = task.fence
        elif score == task.score:
            kept += 1
        else:
            rescored[task.pk] = score
    changed = sum(statements.rescore(connection, part) for part in chunks(rescored, CHUNK))
    # Matches the fence: a task that was assigned and returned meanwhile is left to the next rebuild.
    retired = sum(statements.retire(connection, part) for part in chunks(missing, CHUNK))
    counts = Rebuilt(0, changed, kept, len(rescored) - changed, retired=retired)
    for chunk in chunks(rest):
        counts = counts.plus(put(connection, dispenser, chunk, is_new_work))
    return counts
