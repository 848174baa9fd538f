"""A task in the hands of its handler."""

import contextlib
import inspect
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

from django.db import connections
from django.db.models import F

from resourcepool import options
from resourcepool.database.clock import monotonic
from resourcepool.database.open_transaction import guard_transaction, set_idle_timeout
from resourcepool.database.retry import retrying
from resourcepool.elections.term import Term
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost, ResourcePoolError
from resourcepool.leases.lease import Lease
from resourcepool.taskqueue import sessions
from resourcepool.taskqueue.abstract import MAX_OUTCOME
from resourcepool.taskqueue.handlers import Handler
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.policy import TaskSnapshot

logger = logging.getLogger(__name__)


class GivenBack(ResourcePoolError):
    """Raised by a handler that does not go on now: the task is ready again, and has not failed.

    Its process is to stop (``task.is_stopping``), or what it needs is away: ``GivenBack("no broker", after=5)``.

    Args:
        why: shown as the task's outcome.
        after: seconds or timedelta, up to a day, until it may begin again; what is behind it in its lane waits, too.

    Raises:
        BadOption: ``after`` is no such time.
    """

    def __init__(self, why: str = "", *, after: object = 0) -> None:
        super().__init__(why)
        self.after = options.seconds("after", after)


class Result(NamedTuple):
    """What came of an attempt; ``error`` is None when the task is done, ``is_given_back`` when it was not tried.

    ``delay``: seconds until one that was given back may begin again; ``is_disconnected``: it failed by a lost connection.
    """

    outcome: str
    error: str | None = None
    is_given_back: bool = False
    delay: float = 0.0
    is_disconnected: bool = False


class Attempt:
    """One attempt at a task or a timer, in the hands of its handler.

    Attributes:
        attempt: 1 for the first one.
        fence: the fencing token of this attempt; every later one has a higher one.
    """

    data_name: ClassVar[str]  # the attribute for the handler's data, a JSON object

    def __init__(
        self, lease: Lease, handled: str, data: str, handler: Handler | None, attempt: int, fence: int
    ) -> None:
        self.lease, self.attempt, self.fence = lease, attempt, fence
        self._handler, self._handled, self._data = handler, handled, data
        self.max_runtime = None if handler is None else handler.max_runtime
        self.overdue_at = math.inf
        self._stopping = threading.Event()
        self.ends_process: Callable[[BaseException], bool] = lambda _error: False

    @property
    def is_stopping(self) -> bool:
        """Whether the process is to stop: a long handler may raise ``GivenBack`` then."""
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    @property
    def lost(self) -> threading.Event:
        """Set when another process may begin the next attempt."""
        return self.lease.lost

    def ensure_held(self) -> None:
        """Return if no other process can have begun the next attempt. No I/O. Raises LeaseLost."""
        self.lease.ensure_held()

    def run(self) -> Result:
        """Call the handler; raises nothing but what ``ends_process`` is true of."""
        if self._handler is None:
            return Result("", sentence_for("no_handler", name=self._handled))
        try:
            return self._run(self._handler.run)
        except BaseException as error:  # also SystemExit: it is the handler's end, not the process's
            if self.ends_process(error):
                raise
            with contextlib.suppress(Exception):  # of a logging handler: it must not end this thread
                logger.warning("%s failed in attempt %d", self, self.attempt, exc_info=True)
            return failure_result(error)

    def _run(self, run: Callable[[Any], Any]) -> Result:
        self.ensure_held()
        setattr(self, self.data_name, json.loads(self._data))
        try:
            returned = run(self)
        except GivenBack as given:
            return Result(_line(_said(given)), is_given_back=True, delay=given.after)
        if returned is False:
            return Result("", sentence_for("returned_false"))
        if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
            return Result("", sentence_for("has_not_run", name=type(returned).__name__))
        return Result(_outcome(returned))


class RunningTask(Attempt):
    """One attempt at a task: what its handler is given.

    Attributes:
        stream, key, type, lane: see ``submit``.
        params: the JSON object that was submitted.
    """

    data_name = "params"
    params: dict[str, Any]

    def __init__(self, stream: str, head: TaskSnapshot, term: Term, handler: Handler | None) -> None:
        super().__init__(term, head.type, head.params, handler, head.attempts + 1, head.fence + 1)
        self.stream, self.key, self.type, self.lane = stream, head.key, head.type, head.lane
        self.pk, self.failures, self.crashes = head.pk, head.failures, head.crashes
        self.overdue_at = monotonic() + (math.inf if self.max_runtime is None else self.max_runtime)

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this attempt is the current one.

        The task's row is locked until then, so no later attempt begins before the commit. It must be a transaction on
        the database of the tasks. A session that is silent in it for the length of a term (5 s at least) is ended by
        the server, so that a process which stands still does not hold up the next leader.

        Raises:
            LeaseLost: it is not; the innermost ``atomic`` block rolls back, also if the error is caught inside it.
            GuardOutsideTransaction: no transaction is open.
        """
        using = self.lease.using
        with guard_transaction(using, self.ensure_held, "task"):
            set_idle_timeout(connections[using], self.lease.terms.ttl)
            self._write(holder=F("holder"))
        yield self

    def progress(self, text: str) -> None:
        """Show how far it is, as the task's outcome: one line of which 200 characters are kept. Raises LeaseLost."""
        self.ensure_held()
        line = " ".join(str(text).split())[:200]
        retrying(connections[self.lease.using], lambda: self._write(outcome=line))

    def _write(self, **changes: Any) -> None:
        mine = Task.objects.using(self.lease.using).filter(pk=self.pk, fence=self.fence)
        if not mine.update(**changes):
            raise LeaseLost(f"task {self} was taken away from attempt {self.attempt}")

    def __str__(self) -> str:
        return f"{self.stream}/{self.key}"


def failure_result(error: BaseException) -> Result:
    """Return the result of an attempt that this error has ended."""
    return Result(
        "",
        _line(f"{type(error).__name__}: {_said(error)}"),
        is_disconnected=sessions.caused_by_disconnection(error),
    )


def _outcome(returned: Any) -> str:
    if returned is None or returned is True:
        return ""
    try:
        text = json.dumps(returned, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return ""  # what cannot be written is no result
    return text if len(text) <= MAX_OUTCOME else ""


def _said(error: BaseException) -> str:
    try:
        return "".join(str(error))  # also what is a class of its own
    except BaseException:  # noqa: BLE001 (it is the handler's own, such as a SystemExit)
        return "its text cannot be read"


def _line(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MAX_OUTCOME]
