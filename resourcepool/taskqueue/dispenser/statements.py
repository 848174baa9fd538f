"""The SQL statements that assign, finish and return tasks, composed once for each database.

Django would take as long to compose them as a database server takes to execute them.
"""

# ruff: noqa: S608 (quoted names)

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import cached_per_database, micros
from resourcepool.events import sentence_for
from resourcepool.leases.statements import by_key, still_current
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask

ORDER = "resourcepool_dispensed_order"


class DispenserSnapshot(NamedTuple):
    """The state of a dispenser.

    Attributes:
        bucket: the live bucket of the requested name, if there is one.
        head: score and primary key of the first task in the pool, if there is one.
        expired: buckets to reclaim.
    """

    most_expirations: int
    is_paused: bool
    bucket: int | None
    head: tuple[float, int] | None
    expired: list[int]

    @property
    def live_bucket(self) -> int:
        assert self.bucket is not None  # noqa: S101 (for the type checker)
        return self.bucket


class Row(NamedTuple):
    pk: int
    key: str
    fence: int
    score: float


class Texts:
    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        quote, db_dialect = connection.ops.quote_name, dialect.of(connection)
        task, bucket, dispenser = (quote(model._meta.db_table) for model in (DispenserTask, Bucket, Dispenser))
        key, name, now = quote("key"), quote("name"), db_dialect.indexed_now
        skips = connection.features.has_select_for_update_skip_locked
        row = f"SELECT id, {key}, fence, score FROM {task}"
        ready = "WHERE dispenser_id = %s AND state = 'ready'"
        by_order = f"{db_dialect.by_index.format(index=quote(ORDER))} {ready}"
        self.look = (
            f"SELECT 'd', most_expirations, CASE WHEN is_paused THEN 1 ELSE 0 END FROM {dispenser} WHERE {name} = %s "
            f"UNION ALL SELECT 'm', id, 0 FROM {bucket} WHERE dispenser_id = %s AND {name} = %s "
            f"AND busy_before > {now} "
            f"UNION ALL SELECT 'x', id, 0 FROM {bucket} WHERE dispenser_id = %s AND busy_before <= {now} "
            f"UNION ALL SELECT 'h', id, score FROM "
            f"(SELECT id, score FROM {task}{by_order} ORDER BY score, id LIMIT 1) head"
        )
        self.touch = (
            f"UPDATE {bucket} SET busy_before = {db_dialect.later} WHERE id = %s AND busy_before > {now}"
        )
        self.held = f"{row} WHERE bucket_id = %s AND state = 'assigned' ORDER BY score, id"
        self.ready = f"{row} {ready}"
        first = f"{row}{by_order}{{and_not_before}} ORDER BY score, id LIMIT %s"
        self.first = f"{first}{' FOR UPDATE SKIP LOCKED' if skips else ''}"
        self.take = (
            f"UPDATE {task} SET state = 'assigned', bucket_id = %s, fence = fence + 1, assigned_at = {now} "
            "WHERE id IN ({ids}) AND state = 'ready'"
        )
        self.give_back = (
            f"UPDATE {task} SET state = 'ready', bucket_id = NULL, fence = fence + 1 "
            "WHERE {current} AND bucket_id = %s"
        )
        self.retire = f"DELETE FROM {task} WHERE {{current}} AND state = %s"
        self.rescore = f"UPDATE {task} SET score = {{score}} WHERE id IN ({{ids}}) AND state = 'ready'"
        self.key = key
        self.done = (
            f"UPDATE {task} SET state = 'done', bucket_id = NULL, fence = fence + 1, finished_at = {now}, "
            f"outcome = %s WHERE dispenser_id = %s AND {{current}} AND bucket_id = "
            f"(SELECT id FROM {bucket} WHERE dispenser_id = %s AND {name} = %s)"
        )


texts = cached_per_database(Texts)


def read_snapshot(connection: BaseDatabaseWrapper, dispenser: str, bucket: str) -> DispenserSnapshot | None:
    """Read a dispenser, with the bucket of this name; None: the dispenser does not exist."""
    params = (dispenser, dispenser, bucket, dispenser, dispenser)
    rows = dialect.run(connection, texts(connection).look, params, dialect.all_rows)
    settings = next(((most, bool(is_paused)) for kind, most, is_paused in rows if kind == "d"), None)
    live_bucket = next((pk for kind, pk, _ in rows if kind == "m"), None)
    head = next(((float(score), int(pk)) for kind, pk, score in rows if kind == "h"), None)
    expired = [pk for kind, pk, _ in rows if kind == "x"]
    return None if settings is None else DispenserSnapshot(*settings, live_bucket, head, expired)


def touch(connection: BaseDatabaseWrapper, bucket: int, ttl: float) -> bool:
    """Let a live bucket expire in ``ttl`` seconds; False: it has expired. Locks it until the commit."""
    return bool(_count(connection, texts(connection).touch, (micros(ttl), bucket)))


def tasks_in_bucket(connection: BaseDatabaseWrapper, bucket: int) -> list[Row]:
    """Return the tasks in a bucket, in order."""
    return _rows(connection, texts(connection).held, (bucket,))


def ready(connection: BaseDatabaseWrapper, dispenser: str) -> list[Row]:
    """Return all tasks in the pool, in no order."""
    return _rows(connection, texts(connection).ready, (dispenser,))


def lock_first_ready(
    connection: BaseDatabaseWrapper, dispenser: str, most: int, head: tuple[float, int] | None = None
) -> list[Row]:
    """Lock and return the first tasks in the pool that are not locked.

    Args:
        head: score and primary key of the first task of a recent snapshot; earlier tasks are left to the next call.
            InnoDB keeps index entries of recently assigned tasks for about a second. A plain read skips them, but this
            statement would lock each, which would take most of its time.
    """
    and_not_before = ""
    if head:
        # MySQL reads a number with an exponent as a double, not as a decimal.
        score = f"{head[0]!r}{'' if 'e' in repr(head[0]) else 'e0'}"
        after = dialect.of(connection).not_before.format(
            first="score", second="id", first_value=score, second_value=head[1]
        )
        and_not_before = f" AND {after}"
    sql = texts(connection).first.format(and_not_before=and_not_before)
    return _rows(connection, sql, (dispenser, most))


def take(connection: BaseDatabaseWrapper, bucket: int, rows: Sequence[Row]) -> list[Row]:
    """Put locked ready tasks into a bucket; return them with their new fences."""
    _count(connection, texts(connection).take.format(ids=_ids(row.pk for row in rows)), (bucket,))
    return [row._replace(fence=row.fence + 1) for row in rows]


def give_back(connection: BaseDatabaseWrapper, bucket: int, rows: Sequence[Row]) -> int:
    """Return these tasks to the pool if the bucket still has them under these fences; return their number."""
    current = _current(fences_of(rows))
    return _count(connection, texts(connection).give_back.format(current=current), (bucket,))


def retire(connection: BaseDatabaseWrapper, fences: Mapping[int, int], state: str = "ready") -> int:
    """Delete the tasks, {primary key: fence}, that still have this state and fence; return their number."""
    return _count(connection, texts(connection).retire.format(current=_current(fences)), (state,))


def rescore(connection: BaseDatabaseWrapper, scores: Mapping[int, float]) -> int:
    """Set the scores, {primary key: score}, of tasks that are still ready; return their number."""
    score = by_key("id", _numbers(scores), ["%s"] * len(scores))
    sql = texts(connection).rescore.format(ids=_ids(scores), score=score)
    return _count(connection, sql, tuple(scores.values()))


def done(connection: BaseDatabaseWrapper, dispenser: str, bucket: str, fences: Mapping[str, int]) -> int:
    """Finish these tasks, {key: fence}, of a bucket; return how many still had their fence."""
    outcome = DispenserTask._meta.get_field("outcome").get_prep_value(done_by(bucket))
    sql, marks = texts(connection).done, ["%s"] * len(fences)
    sql = sql.format(current=still_current(texts(connection).key, "fence", marks, _numbers(fences.values())))
    return _count(connection, sql, (outcome, dispenser, *fences, *fences, dispenser, bucket))


def done_by(worker: str) -> str:
    """Return the outcome text of a task done by this worker."""
    return sentence_for("done_by", name=worker)


def fences_of(rows: Iterable[Row]) -> dict[int, int]:
    """Return {primary key: fence}, for ``retire``."""
    return {row.pk: row.fence for row in rows}


def _current(fences: Mapping[int, int]) -> str:
    """Return the condition that tasks, {primary key: fence}, still have these fences."""
    return still_current("id", "fence", _numbers(fences), _numbers(fences.values()))


def _rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Row]:
    return [Row(*row) for row in dialect.run(connection, sql, params, dialect.all_rows)]


def _count(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> int:
    return int(dialect.run(connection, sql, params, dialect.row_count))


def _ids(pks: Iterable[int]) -> str:
    return ", ".join(_numbers(pks))


def _numbers(values: Iterable[int]) -> list[str]:
    # No placeholders, because drivers are slow with many of them.
    return [f"{value:d}" for value in values]
