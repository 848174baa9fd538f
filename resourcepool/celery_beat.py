"""Celery beat on several hosts: one leads, another takes over, and nothing is started twice.

    CELERY_BEAT_SCHEDULER = "resourcepool.celery_beat:LeasedDatabaseScheduler"

The entries are django-celery-beat's, in its own tables. One transaction marks a due entry as run, submits its Celery
task to the stream ``celery-beat`` and checks that this beat still leads. The stream's consumer, a thread of the
leading beat, sends the tasks to the broker and retries while the broker is down.
"""

import datetime
import json
import logging
import uuid
from typing import Any, ClassVar

from celery import current_app
from celery.exceptions import OperationalError
from celery.utils.time import maybe_make_aware
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, router, transaction
from django.db.models import F
from django_celery_beat.schedulers import DatabaseScheduler
from kombu.utils.json import dumps, loads

from resourcepool.db.threads import Daemon
from resourcepool.elections.election import Term
from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.hints.broker import broker_connection
from resourcepool.taskqueue import Consumer, GivenBack, RunningTask, handler, submit
from resourcepool.taskqueue.abstract import MAX_RETRIES
from resourcepool.taskqueue.models import MAX_LANES, Stream

logger = logging.getLogger(__name__)

STREAM = "celery-beat"
SEND = "send to Celery"
STANDBY = 1.0  # seconds between two checks of a standby whether it leads
DEFAULTS = {
    "term_ttl": 15.0,
    "lanes": MAX_LANES,  # one per entry, so that an entry that cannot be sent delays no other
    "retries": MAX_RETRIES,
    "retry_delay": 5.0,
    "on_failure": Stream.OnFailure.SKIP,
    "done_kept": 86_400.0,
}
BROKER_RETRY = 5.0  # seconds until the next attempt while the broker is down
BROKER_ERRORS = (OperationalError, OSError)
TIME_OPTIONS = ("expires", "eta")
ENTRIES = uuid.UUID("6f0d27c4-7a2c-4a0c-9d5e-8a4f4f8f2b11")


class LeasedDatabaseScheduler(DatabaseScheduler):  # type: ignore[misc]  # it has no types
    """django-celery-beat's scheduler, with one active instance at a time.

    After a failover each due entry runs once, however often it was missed.

    Not promised: that the broker gets a task only once. A beat that crashes after sending a task and before recording
    it sends it again, under the same Celery task id.
    """

    producer = None  # the consumer sends, so no tick waits for the broker

    _initializing: ClassVar[list[Any]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._term: Term | None = None
        self._consumer: Consumer | None = None
        self._thread: Daemon | None = None
        self._is_ticking = self._is_closed = False
        # Celery's SIGTERM handler makes a second one, in the middle of a statement of the first.
        if self._initializing:
            kwargs["lazy"] = True
        self._initializing.append(self)
        try:
            super().__init__(*args, **kwargs)
        finally:
            self._initializing.remove(self)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Start one due entry if this beat leads; returns the seconds until the next call.

        Raises:
            SystemExit: it was closed. Celery's signal handler raised it, too, but drivers may have replaced that one.
        """
        if self._is_closed:
            raise SystemExit
        self._is_ticking = True
        try:
            term = self._term_of_this_beat()
            if term is not self._term:
                self._invalidate()
                self._term = term
            if term is None or not term.is_leader:
                return STANDBY
            return float(super().tick(*args, **kwargs))
        except (ResourcePoolError, DatabaseError, InterfaceError) as error:
            logger.warning("celery beat: %s", error)
            self._invalidate()
            return STANDBY
        finally:
            self._is_ticking = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Mark the entry as run and submit its Celery task, unless another beat was faster.

        An entry with parameters that no stream accepts is logged and marked as run, so it does not block the others.
        """
        model, term = entry.model, self._term
        if term is None:
            return
        rows = self.Model.objects.using(term.using).filter(
            pk=model.pk, enabled=True, total_run_count=entry.total_run_count
        )
        key = _key(entry)
        with transaction.atomic(using=term.using), term.guard():
            if rows.update(last_run_at=model.last_run_at, total_run_count=F("total_run_count") + 1):
                _submit(entry, key)
                return
        self._invalidate()  # it was changed meanwhile

    def enabled_models_qs(self) -> Any:
        """Return all enabled entries.

        django-celery-beat leaves out crontabs with a single, distant hour: after an outage a missed one would not run
        at once, but at a wrong hour of the next day.
        """
        return self.Model.objects.enabled()

    def sync(self) -> None:
        """Write nothing: ``apply_entry`` writes each run."""
        self._dirty.clear()

    def close(self) -> None:
        """Resign, so that another beat leads at once.

        Celery's signal handler calls it, too, perhaps in the middle of a tick. The tick's transaction may lock rows
        that the consumer needs to end, so this does not wait then. After the tick Celery calls it again.
        """
        for scheduler in (self, *self._initializing):
            scheduler._is_closed = True
        if self._consumer is not None and self._thread is not None:
            self._consumer.stop()
            if not self._is_ticking:
                self._thread.join(STANDBY * 10)
        super().close()

    def _term_of_this_beat(self) -> Term | None:
        if self._consumer is None:  # not earlier: the service may fork after making its scheduler
            _refuse_two_databases(self.Model)
            self._consumer = Consumer(STREAM)
            self._thread = Daemon(STREAM, self._consumer.run)
        assert self._thread is not None  # noqa: S101 (for the type checker)
        if not self._thread.is_alive:  # also when it ended because the stream was deleted
            Stream.objects.get_or_create(name=STREAM, defaults=DEFAULTS)
        self._thread.ensure_started()
        return self._consumer.term

    def _invalidate(self) -> None:
        self._dirty.clear()
        self._initial_read, self._heap = True, None


@handler(SEND)
def send(task: RunningTask) -> str:
    """Send a Celery task to the broker; returns its id. While the broker is down the task waits, without a limit."""
    params = task.params
    args, kwargs = _unpacked(params["args"]), _unpacked(params["kwargs"])
    options: dict[str, Any] = {
        name: datetime.datetime.fromisoformat(value)
        if name in TIME_OPTIONS and isinstance(value, str)
        else value
        for name, value in _unpacked(params["options"]).items()
    }
    registered = current_app.tasks.get(params["task"])
    try:
        with broker_connection(current_app) as connection:
            options = {**options, "task_id": params["id"], "connection": connection, "retry": False}
            if registered is not None:
                registered.apply_async(args, kwargs, **options)
            else:
                current_app.send_task(params["task"], args, kwargs, **options)
    except BROKER_ERRORS as error:  # not a failure, because failures count against the retries
        logger.warning("celery beat: task %s waits for the broker: %s", task, error)
        raise GivenBack(f"{type(error).__name__}: {error}", after=BROKER_RETRY) from error
    return str(params["id"])


def _submit(entry: Any, key: str) -> None:
    try:
        submit(STREAM, SEND, _sendable(entry, key), key=key, lane=str(entry.model.pk))
    except BadOption as error:
        if error.name != "params":  # the stream was deleted: it is sent once that exists again
            raise
        logger.error("celery beat: %r cannot be sent and is skipped: %s", entry.name, error)  # noqa: TRY400


def _key(entry: Any) -> str:
    """Return the key of an entry's next run; saving an outdated copy of the entry repeats no run."""
    last_run_at = maybe_make_aware(entry.last_run_at).astimezone(datetime.UTC)
    return f"{entry.model.pk} {entry.total_run_count} {last_run_at.isoformat()}"


def _sendable(entry: Any, key: str) -> dict[str, Any]:
    options = dict(entry.options)
    if isinstance(seconds := options.get("expires"), int):  # counted from now, also while the broker is down
        options["expires"] = entry.model.last_run_at + datetime.timedelta(seconds=seconds)
    options = {
        name: value.isoformat() if isinstance(value, datetime.datetime) else value
        for name, value in options.items()
    }
    values = {"args": entry.args, "kwargs": entry.kwargs, "options": options}
    celery_id = str(uuid.uuid5(ENTRIES, key))
    return {"task": entry.task, "id": celery_id, **{name: _packed(value) for name, value in values.items()}}


def _packed(value: Any) -> Any:
    """Return plain JSON for types that Celery encodes its own way: datetimes, decimals, UUIDs."""
    return json.loads(dumps(value))


def _unpacked(value: Any) -> Any:
    return loads(json.dumps(value))


def _refuse_two_databases(model: Any) -> None:
    entries, streams = router.db_for_write(model), router.db_for_write(Stream)
    if entries != streams:
        raise ImproperlyConfigured(
            f"django-celery-beat's tables are on database {entries!r}, resourcepool's on {streams!r}: "
            "LeasedDatabaseScheduler writes both in one transaction"
        )
