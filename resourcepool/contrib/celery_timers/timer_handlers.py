"""Celery tasks at a given time, stored as timers in the database instead of as an ETA in the broker.

    from resourcepool.contrib.celery_timers import apply_async_at

    apply_async_at(send_reminder, after=timedelta(days=3), args=[order.pk])

A timer node (``manage.py resourcepool_timers``) sends the task to the broker at its time and retries while the broker
is down. All attempts send the same task id.
"""

import datetime
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from celery import Task, current_app
from django.db import connections, router

from resourcepool.db.retry import retrying
from resourcepool.db.rows import ensure_row
from resourcepool.exceptions import BadOption
from resourcepool.hints.broker import broker_connection
from resourcepool.options import Seconds
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.timers.models import Timer, Topic

TOPIC = "celery"
DEFAULTS = {"retries": 1_000, "retry_delay": 5.0}
REFUSED = ("countdown", "eta", "task_id")


def apply_async_at(
    task: Task[Any, Any] | str,
    *,
    at: datetime.datetime | None = None,
    after: Seconds | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    **options: Any,
) -> timers.Scheduled:
    """Send a Celery task at a given time; inside a transaction of the caller it is scheduled with the commit.

    Args:
        task: a task, or its name.
        at, after: exactly one; see ``timers.schedule``.
        args, kwargs: JSON.
        name: the timer's name, for ``timers.cancel(name, topic="celery")`` and to replace it; random by default.
        options: of ``apply_async``, such as ``queue``, ``priority`` or ``expires`` (seconds after it is sent); JSON.

    Not promised: that the task runs once. If a timer node crashes after sending it and before recording that, another
    one sends it again under the same task id.

    Raises:
        BadOption: a value is not allowed.
        DatabaseUnavailable: it is unknown whether it was scheduled; call it again with a name.
    """
    for refused in REFUSED:
        if refused in options:
            raise BadOption(
                refused, options[refused], because="apply_async_at sets it; give the time by after or at"
            )
    using = router.db_for_write(Timer)
    retrying(connections[using], partial(ensure_row, Topic, using, TOPIC, **DEFAULTS))
    call = {
        "task": task if isinstance(task, str) else task.name,
        "args": list(args),
        "kwargs": dict(kwargs or {}),
    }
    task_id = str(uuid.uuid4())
    payload = {**call, "options": {**options, "task_id": task_id}}
    return timers.schedule(name or task_id, topic=TOPIC, at=at, after=after, payload=payload)


@timers.on(TOPIC)
def send(timer: timers.RunningTimer) -> None:
    """Send the task to the broker."""
    call = timer.payload
    with broker_connection(current_app) as connection:
        options = {"retry": False, **call["options"], "connection": connection}
        current_app.send_task(call["task"], call["args"], call["kwargs"], **options)
