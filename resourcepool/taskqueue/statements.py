"""The SQL of attempts at tasks, put together once for each database.

Not querysets, because Django compiles one anew for each task, which takes longer than the server needs for it.
"""

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.dialect import micros
from resourcepool.options import DAY
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.policy import End

Attempt = tuple[int, int]  # a task's primary key, and its fence as it was seen
COLUMNS = ["pk", "fence", "key", "type", "params", "lane", "state", "attempts", "failures", "deaths", "term"]


class Texts:
    """The statements for one database: each returns its SQL and its parameters."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        quote, speaks, meta = connection.ops.quote_name, dialect.of(connection), Task._meta
        assert meta.pk is not None  # noqa: S101 (for the type checker)
        name = {field.name: quote(str(field.column)) for field in meta.concrete_fields}
        name["pk"] = name[meta.pk.name]
        table, now, busy, fence = quote(meta.db_table), speaks.indexed_now, name["busy_before"], name["fence"]
        self._pk, self._fence, self._lane = name["pk"], fence, name["lane"]
        self._unfinished = f"{name['finished_at']} IS NULL"
        until = speaks.micros_until.format(moment=busy)
        columns = ", ".join(name[column] for column in COLUMNS)
        self._heads = (
            f"SELECT {columns}, {until} FROM {table} WHERE {name['stream']} = %s AND {self._unfinished}"  # noqa: S608
        )
        finished = speaks.null_in_order.format(column=name["finished_at"])
        self._in_order = f" ORDER BY {finished}, {name['task_time']}, {name['pk']} LIMIT "
        self._begin = (
            f"UPDATE {table} SET {name['state']} = %s, {fence} = {fence} + 1, {name['holder']} = %s, "  # noqa: S608
            f"{busy} = {speaks.later}, {name['attempts']} = {name['attempts']} + 1, {name['term']} = %s, "
            f"{name['started_at']} = {now} WHERE "
        )
        self._end = (
            f"UPDATE {table} SET {name['state']} = %s, {fence} = {fence} + 1, {name['holder']} = '', "  # noqa: S608
            f"{busy} = {speaks.later}, {name['outcome']} = %s"
        )
        self._finished = f", {name['finished_at']} = {now}"
        self._failed = f", {name['failures']} = %s, {name['deaths']} = %s"
        self._delete = f"DELETE FROM {table} WHERE "  # noqa: S608

    def heads(self, stream: str, without: Sequence[str], most: int) -> tuple[str, list[Any]]:
        """Read the first ``most`` unfinished tasks in order, but for those of the lanes ``without``."""
        passed = f" AND {self._lane} NOT IN ({', '.join(['%s'] * len(without))})" if without else ""
        return f"{self._heads}{passed}{self._in_order}{most:d}", [stream, *without]

    def begin(self, attempts: Sequence[Attempt], term: int, holder: str) -> tuple[str, list[Any]]:
        """Begin attempts at these tasks."""
        match, params = self._current(attempts)
        return self._begin + match, [Task.State.RUNNING.value, holder, micros(DAY), term, *params]

    def end(self, attempts: Sequence[Attempt], end: End) -> tuple[str, list[Any]]:
        """End these attempts, all in the same way."""
        match, params = self._current(attempts)
        if end.verdict is None:
            return self._delete + match, params
        changes: list[Any] = [end.verdict.state.value, micros(end.verdict.delay), end.outcome]
        sql = self._end
        if end.verdict.is_finished:
            sql += self._finished
        if end.counts is not None:
            sql += self._failed
            changes += end.counts
        return f"{sql} WHERE {match}", [*changes, *params]

    def _current(self, attempts: Sequence[Attempt]) -> tuple[str, list[int]]:
        """Return the condition that these are still the tasks' attempts, and that the tasks are not finished."""
        keys = [pk for pk, _ in attempts]
        if len(attempts) == 1:
            return f"{self._pk} = %s AND {self._fence} = %s AND {self._unfinished}", list(attempts[0])
        # Not "(pk, fence) IN (..)": with one pair MariaDB reads the whole table for it.
        fences = f"CASE {self._pk}{' WHEN %s THEN %s' * len(keys)} END"
        match = f"{self._pk} IN ({', '.join(['%s'] * len(keys))}) AND {self._fence} = {fences} AND {self._unfinished}"
        return match, [*keys, *(number for attempt in attempts for number in attempt)]


_texts: dict[str, Texts] = {}


def texts_of(connection: BaseDatabaseWrapper) -> Texts:
    """Return the (remembered) statements for this kind of database."""
    if connection.vendor not in _texts:
        _texts[connection.vendor] = Texts(connection)
    return _texts[connection.vendor]
