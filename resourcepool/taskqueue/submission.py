"""Submission of tasks: one INSERT each, safe to repeat with the same key."""

import datetime
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from django.db import connections, router

from resourcepool import hints, options
from resourcepool.db.dialect import DbNow, in_columns
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import batches, insert_many
from resourcepool.exceptions import BadOption, DatabaseUnavailable
from resourcepool.taskqueue.abstract import CHUNK, existing_names
from resourcepool.taskqueue.models import MAX_KEY, MAX_TYPE, Stream, Task


class Row(NamedTuple):
    """The checked values of a new task; ``task_time`` None: the time of the statement."""

    key: str
    type: str
    params: str
    lane: str
    task_time: datetime.datetime | None


class Submitted(NamedTuple):
    """``is_new``: False if a task with this key existed already; nothing was changed then."""

    key: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to submit; see ``submit``."""

    type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    lane: str = ""
    task_time: datetime.datetime | None = None

    def row(self) -> Row:
        """Return the checked values to store; raises BadOption."""
        return Row(
            key=uuid.uuid4().hex if self.key is None else options.name("key", self.key),
            type=options.text("type", self.type, most=MAX_TYPE),
            params=options.json_object("params", self.params),
            lane=options.name("lane", self.lane) if self.lane != "" else "",
            task_time=None if self.task_time is None else _in_columns(self.task_time),
        )


def submit(
    stream: str,
    type: str,  # noqa: A002 (the usual word)
    params: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    lane: str = "",
    task_time: datetime.datetime | None = None,
) -> Submitted:
    """Add a task to a stream. Inside a transaction of the caller it is added when that commits.

    Args:
        type: the task type; the consumer's process needs a handler for it.
        params: the argument of the handler; a JSON object of at most 64 KiB.
        key: unique in the stream, so that a repeated call, for example after an error with unknown outcome, adds one
            task only; random if not given. The key can be used again once the finished task is removed.
        lane: in a stream with several lanes, tasks of the same lane run in order.
        task_time: the place in the order; tasks of the same time run in order of submission. None: now, by the database
            clock. With USE_TZ = False it is a time in TIME_ZONE.

    Raises:
        BadOption: there is no such stream (the error names some that exist), or a value is not allowed.
        DatabaseUnavailable: it is unknown whether the task was added; repeat the call with the same key.
    """
    values = NewTask(type, {} if params is None else params, key, lane, task_time).row()._asdict()
    row = Task(stream_id=stream, **{**values, "task_time": values["task_time"] or DbNow()})
    using = router.db_for_write(Task)
    address = _address(using, stream)

    def settle() -> bool:
        if row.pk and not Task.leaves_a_row(using, stream, row.key):
            raise DatabaseUnavailable(f"task {row} may have been submitted, and have been done since")
        raise Unsettled

    is_new = retrying(connections[using], partial(row.insert, using), settle=settle)
    if address:
        hints.after_commit(using, hints.send, address)
    return Submitted(row.key, is_new)


def submit_many(stream: str, tasks: Iterable[NewTask]) -> int:
    """Add many tasks, in this order, in statements of up to 1,000; returns how many keys were new.

    Nothing is added if one of the tasks is not allowed. Outside a transaction of the caller each statement commits
    separately: after an error, repeat the call with the same keys. Keys added by a try with an unknown outcome do not
    count as new.

    Raises:
        BadOption: as ``submit``; it names the task.
        DatabaseUnavailable: some may have been added.
    """
    rows = [_numbered(number, task) for number, task in enumerate(tasks)]
    using = router.db_for_write(Task)
    address, added = _address(using, stream), 0
    for batch in batches(rows, lambda row: sum(map(len, row[:-1])), CHUNK):
        added += retrying(connections[using], partial(_add, using, stream, batch))
    if address:
        hints.after_commit(using, hints.send, address)
    return added


def _add(using: str, stream: str, batch: list[Row]) -> int:
    # An insertion that finds its key would keep it locked until the end of the transaction.
    rows = Task.objects.using(using).filter(stream_id=stream, key__in=[row.key for row in batch])
    known = set(rows.values_list("key", flat=True))
    new = [row for row in batch if row.key not in known]
    if not new:
        return 0
    connection, to_store = connections[using], Task._meta.get_field("task_time").get_db_prep_save
    values = [(*row[:-1], row.task_time and to_store(row.task_time, connection)) for row in new]
    return insert_many(connection, Task(stream_id=stream), Row._fields, values)


def _numbered(number: int, task: NewTask) -> Row:
    if not isinstance(task, NewTask):
        raise BadOption(f"tasks[{number}]", task, "a NewTask")
    try:
        return task.row()
    except BadOption as error:
        raise error.of(f"tasks[{number}].{error.name}") from error


def _address(using: str, stream: str) -> int:
    """Return the hint address of the consumer; raises BadOption if there is no such stream."""
    rows = Stream.objects.using(using).filter(pk=options.text("stream", stream, most=MAX_KEY))
    address = retrying(connections[using], rows.values_list("address", flat=True).first)
    if address is None:
        raise BadOption("stream", stream, existing_names(Stream, using))
    return int(address)


def _in_columns(task_time: object) -> datetime.datetime:
    return in_columns(options.moment("task_time", task_time), connections[router.db_for_write(Task)])
