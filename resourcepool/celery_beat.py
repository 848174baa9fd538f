"""Celery beat on several hosts: one leads, another takes over, and nothing is started twice (celery #1495).

    CELERY_BEAT_SCHEDULER = "resourcepool.celery_beat:LeasedDatabaseScheduler"

The entries are django-celery-beat's, its tables unchanged. A due entry is noted as run, and its Celery task submitted
to the stream ``celery-beat``, in one transaction with the check that this beat still leads. The stream's consumer, a
thread of the beat that leads, hands the tasks to the broker, again and again while the broker is down.
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

from resourcepool.elections.term import Term
from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.hints.broker import broker_connection
from resourcepool.taskqueue import Consumer, GivenBack, RunningTask, handler, submit
from resourcepool.taskqueue.models import MAX_LANES, MAX_RETRIES, Stream
from resourcepool.threads.daemon import Daemon

logger = logging.getLogger(__name__)

STREAM = "celery-beat"
SEND = "send to Celery"
STANDBY = 1.0  # seconds after which a beat that does not lead asks again whether it does
DEFAULTS = {
    "term_ttl": 15.0,
    "lanes": MAX_LANES,  # each entry has its own: one that cannot be sent holds up no other
    "retries": MAX_RETRIES,
    "retry_delay": 5.0,
    "on_failure": Stream.OnFailure.SKIP,
    "done_kept": 86_400.0,
}
ASK_AGAIN = 5.0  # seconds after which a broker that was away is tried again
AWAY = (OperationalError, OSError)
MOMENTS = ("expires", "eta")
ENTRIES = uuid.UUID("6f0d27c4-7a2c-4a0c-9d5e-8a4f4f8f2b11")


class LeasedDatabaseScheduler(DatabaseScheduler):  # type: ignore[misc]  # it has no types
    """django-celery-beat's scheduler, of which one at a time is active.

    After a failover each entry that is due runs once, however often it was missed.

    Not promised: that the broker gets a task only once: a beat that dies between sending and noting it has it sent
    again, under the same Celery task id.
    """

    producer = None  # the consumer sends: no tick waits for the broker

    _being_made: ClassVar[list[Any]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._term: Term | None = None
        self._consumer: Consumer | None = None
        self._thread: Daemon | None = None
        self._is_turning = self._is_to_end = False
        if self._being_made:  # by Celery's handler of SIGTERM, in the middle of a statement of the other one
            kwargs["lazy"] = True
        self._being_made.append(self)
        try:
            super().__init__(*args, **kwargs)
        finally:
            self._being_made.remove(self)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Start one due entry if this beat leads; returns the seconds until the next call.

        Raises:
            SystemExit: it was closed. Celery's signal handler has raised that, too, but drivers may replace it.
        """
        if self._is_to_end:
            raise SystemExit
        self._is_turning = True
        try:
            term = self._term_of_this_beat()
            if term is not self._term:
                self._read_again()
                self._term = term
            if term is None or not term.is_leader:
                return STANDBY
            return float(super().tick(*args, **kwargs))
        except (ResourcePoolError, DatabaseError, InterfaceError) as error:
            logger.warning("celery beat: %s", error)
            self._read_again()
            return STANDBY
        finally:
            self._is_turning = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Note that the entry is run, and submit its Celery task; nothing happens when another beat was faster.

        One whose parameters no stream takes is noted, too, and logged: all others would have to wait for it.
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
        self._read_again()  # it was changed meanwhile

    def enabled_models_qs(self) -> Any:
        """Return all enabled entries.

        django-celery-beat leaves out crontabs with a single hour that is not near: one that was missed would not run
        when beat is back, but at a wrong hour of the next day.
        """
        return self.Model.objects.enabled()

    def sync(self) -> None:
        """Write nothing: it is written when an entry is run."""
        self._dirty.clear()

    def close(self) -> None:
        """Resign, so that another beat leads at once.

        Celery's signal handler calls it, too, perhaps in the middle of a turn, whose transaction may have locked what
        the consumer needs to end: then nothing is waited for. When that turn has ended, Celery calls this again.
        """
        for one in (self, *self._being_made):
            one._is_to_end = True
        if self._consumer is not None and self._thread is not None:
            self._consumer.stop()
            if not self._is_turning:
                self._thread.join(STANDBY * 10)
        super().close()

    def _term_of_this_beat(self) -> Term | None:
        if self._consumer is None:  # not before: the service may fork after it has made its scheduler
            _refuse_two_databases(self.Model)
            self._consumer = Consumer(STREAM)
            self._thread = Daemon(STREAM, self._consumer.run)
        assert self._thread is not None  # noqa: S101 (for the type checker)
        if not self._thread.is_alive:  # also when it ended because the stream was deleted
            Stream.objects.get_or_create(name=STREAM, defaults=DEFAULTS)
        self._thread.ensure_started()
        return self._consumer.term

    def _read_again(self) -> None:
        self._dirty.clear()
        self._initial_read, self._heap = True, None


@handler(SEND)
def send(task: RunningTask) -> str:
    """Hand a Celery task to the broker; returns its id. While that is away the task waits, however long."""
    wanted = task.params
    args, kwargs = _unpacked(wanted["args"]), _unpacked(wanted["kwargs"])
    options: dict[str, Any] = {
        name: datetime.datetime.fromisoformat(value) if name in MOMENTS and isinstance(value, str) else value
        for name, value in _unpacked(wanted["options"]).items()
    }
    known = current_app.tasks.get(wanted["task"])
    try:
        with broker_connection(current_app) as connection:
            options = {**options, "task_id": wanted["id"], "connection": connection, "retry": False}
            if known is not None:
                known.apply_async(args, kwargs, **options)
            else:
                current_app.send_task(wanted["task"], args, kwargs, **options)
    except AWAY as error:  # no failure: after so many of them it would be given up
        logger.warning("celery beat: task %s waits for the broker: %s", task, error)
        raise GivenBack(f"{type(error).__name__}: {error}", after=ASK_AGAIN) from error
    return str(wanted["id"])


def _submit(entry: Any, key: str) -> None:
    try:
        submit(STREAM, SEND, _sendable(entry, key), key=key, lane=str(entry.model.pk))
    except BadOption as error:  # else it would be due for ever, and hold up the others
        if error.name != "params":  # the stream is gone: it is sent when that is back
            raise
        logger.error("celery beat: %r cannot be sent and is passed over: %s", entry.name, error)  # noqa: TRY400


def _key(entry: Any) -> str:
    """Return a key for the run of an entry that follows the last one: who saves an outdated copy starts none again."""
    last_run_at = maybe_make_aware(entry.last_run_at).astimezone(datetime.UTC)
    return f"{entry.model.pk} {entry.total_run_count} {last_run_at.isoformat()}"


def _sendable(entry: Any, key: str) -> dict[str, Any]:
    options = dict(entry.options)
    if isinstance(seconds := options.get("expires"), int):  # from now on, however long the broker is away
        options["expires"] = entry.model.last_run_at + datetime.timedelta(seconds=seconds)
    options = {
        name: value.isoformat() if isinstance(value, datetime.datetime) else value
        for name, value in options.items()
    }
    values = {"args": entry.args, "kwargs": entry.kwargs, "options": options}
    celery_id = str(uuid.uuid5(ENTRIES, key))
    return {"task": entry.task, "id": celery_id, **{name: _packed(value) for name, value in values.items()}}


def _packed(value: Any) -> Any:
    """Return plain JSON for what Celery has its own JSON for: moments, decimal numbers, UUIDs."""
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
