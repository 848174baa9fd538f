"""A task while its handler runs."""

import contextlib
import inspect
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.db.models import F

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.open_transaction import guard_transaction
from resourcepool.db.retry import retrying
from resourcepool.elections.election import Term
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost, ResourcePoolError
from resourcepool.leases.lease import Lease
from resourcepool.options import Seconds
from resourcepool.taskqueue.abstract import MAX_OUTCOME
from resourcepool.taskqueue.handlers import Handler
from resourcepool.taskqueue.models import Task
from resourcepool.taskqueue.policy import Result, TaskSnapshot
from resourcepool.text import printable

logger = logging.getLogger(__name__)

MAX_CAUSES = 20  # in a chain of exceptions


class GivenBack(ResourcePoolError):
    """Raised by a handler to give its task back: the task is ready again and has not failed.

    Use it when the process is stopping (``task.is_stopping``) or a dependency is unavailable:
    ``GivenBack("no broker", after=5)``.

    Args:
        why: shown as the task's outcome.
        after: seconds or timedelta, up to a day, until the task may begin again; later tasks of its lane wait, too.

    Raises:
        BadOption: ``after`` is not such a time.
    """

    def __init__(self, why: str = "", *, after: Seconds = 0) -> None:
        super().__init__(why)
        self.after = options.seconds("after", after)


class Attempt:
    """One attempt at a task or a timer, as its handler sees it.

    Attributes:
        attempt: the number of this attempt, from 1.
        fence: the fencing token of this attempt; it is higher for every later one.
    """

    data_name: ClassVar[str]  # the attribute with the JSON object for the handler
    overdue_text: ClassVar[str]  # the message about an attempt {0} that exceeded its max_runtime
    pk: int

    def __init__(
        self, lease: Lease, handled: str, data: str, handler: Handler | None, attempt: int, fence: int
    ) -> None:
        self.lease, self.attempt, self.fence = lease, attempt, fence
        self._handler, self._handled, self._data = handler, handled, data
        self.max_runtime = None if handler is None else handler.max_runtime
        self.overdue_at = math.inf
        self._stopping = threading.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether the process is stopping: a long handler may raise ``GivenBack`` then."""
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    @property
    def lost(self) -> threading.Event:
        """Set when another process may begin the next attempt."""
        return self.lease.lost

    def ensure_held(self) -> None:
        """Raise LeaseLost if another process may have begun the next attempt. No I/O."""
        self.lease.ensure_held()

    def ends_process(self, error: BaseException) -> bool:
        """Whether an error of the handler means that this process has to exit."""
        return False

    def ended(self, result: Result, *, is_cut_off: bool = False) -> Result:
        """Return the result with what is known when the attempt has ended."""
        return result

    def run(self) -> Result:
        """Call the handler; raises only errors for which ``ends_process`` is true."""
        if self._handler is None:
            return Result("", sentence_for("no_handler", name=self._handled))
        try:
            return self._run(self._handler.run)
        except BaseException as error:  # also SystemExit: it ends the handler, not the process
            if self.ends_process(error):
                raise
            with contextlib.suppress(Exception):  # an error of a logging handler must not end this thread
                logger.warning("%s failed on attempt %d", self, self.attempt, exc_info=True)
            return failure_result(error)

    def _run(self, run: Callable[[Any], Any]) -> Result:
        self.ensure_held()
        setattr(self, self.data_name, json.loads(self._data))
        try:
            returned = run(self)
        except GivenBack as error:
            return Result(_line(str(error)), is_given_back=True, delay=error.after)
        if returned is False:
            return Result("", sentence_for("returned_false"))
        if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
            return Result("", sentence_for("has_not_run", name=type(returned).__name__))
        return Result(_outcome(returned))


class RunningTask(Attempt):
    """One attempt at a task: the argument of its handler.

    Attributes:
        stream, key, type, lane: see ``submit``.
        params: the JSON object that was submitted.
    """

    data_name = "params"
    overdue_text = "{0}: it ran longer than its max_runtime of {0.max_runtime:g} s"
    params: dict[str, Any]

    def __init__(self, stream: str, head: TaskSnapshot, term: Term, handler: Handler | None) -> None:
        super().__init__(term, head.type, head.params, handler, head.attempts + 1, head.fence + 1)
        self.stream, self.key, self.type, self.lane = stream, head.key, head.type, head.lane
        self.pk, self.failures, self.crashes = head.pk, head.failures, head.crashes
        self.overdue_at = monotonic() + (math.inf if self.max_runtime is None else self.max_runtime)

    @contextlib.contextmanager
    def guard(self) -> Iterator[Self]:
        """Let the caller's open transaction commit only while this attempt is the current one.

        The task's row is locked until then, so no later attempt begins before the commit. The transaction must be on
        the database of the tasks. The database server ends its session after being idle for the ttl of a term (5 s at
        least), so that a suspended process does not block the next leader.

        Raises:
            LeaseLost: this attempt is not current; the innermost ``atomic`` block rolls back, also if the error is
                caught inside it.
            GuardOutsideTransaction: no transaction is open.
        """
        using = self.lease.using
        with guard_transaction(using, self.ensure_held, "task"):
            self._write(holder=F("holder"))
        yield self

    def progress(self, text: str) -> None:
        """Store a progress text as the task's outcome: one line, cut to 200 characters. Raises LeaseLost."""
        self.ensure_held()
        line = " ".join(str(text).split())[:200]
        retrying(connections[self.lease.using], lambda: self._write(outcome=line))

    def _write(self, **changes: Any) -> None:
        mine = Task.objects.using(self.lease.using).filter(pk=self.pk, fence=self.fence)
        if not mine.update(**changes):
            raise LeaseLost(f"attempt {self.attempt} at task {self} is no longer current")

    def __str__(self) -> str:
        return f"{self.stream}/{self.key}"


def failure_result(error: BaseException) -> Result:
    return Result(
        "",
        _line(f"{type(error).__name__}: {error}"),
        is_disconnected=caused_by_disconnection(error),
    )


def close_leaked_connections(result: Result) -> Result:
    """Close connections that the handler left in a transaction; return the result, a failure if there were any."""
    for connection in connections.all(initialized_only=True):
        is_usual = (
            connection.connection is None or connection.autocommit == connection.settings_dict["AUTOCOMMIT"]
        )
        if connection.in_atomic_block or not is_usual:
            dialect.close_quietly(connection)
            del connections[connection.alias]  # with Django's record of open atomic blocks
            if result.error is None and not result.is_given_back:
                result = Result("", sentence_for("transaction_left", alias=repr(connection.alias)))
    if result.error is not None:  # the connections may be the cause
        close_sessions()
    return result


def refresh_sessions() -> None:
    """Close the sessions of this thread that Django would close between two requests."""
    with contextlib.suppress(DatabaseError, InterfaceError):  # the driver may have closed one already
        close_old_connections()


def close_sessions() -> None:
    for connection in connections.all(initialized_only=True):
        dialect.close_quietly(connection)


def _outcome(returned: Any) -> str:
    if returned is None or returned is True:
        return ""
    try:
        text = json.dumps(returned, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return ""  # not JSON: no result is kept
    return text if len(text) <= MAX_OUTCOME else ""


def _line(text: str) -> str:
    return " ".join(printable(text, " ").split())[:MAX_OUTCOME]


def caused_by_disconnection(error: BaseException) -> bool:
    """Whether a lost connection to a database that this thread has used caused this error."""
    return any(_is_disconnection(cause) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_disconnection(error: BaseException) -> bool:
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    supported: list[Any] = [each for each in connections.all(initialized_only=True) if dialect.supports(each)]
    candidates = [each for each in supported if isinstance(error.__cause__, each.Database.Error)]
    return any(dialect.error_kind(each, error) is ErrorKind.DISCONNECTED for each in candidates)
