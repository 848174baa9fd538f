"""Sends a statement: each try has a limit, and is followed by another one after a transient database error.

Only ever around a whole transaction: inside a caller's transaction the first error already decides, and
swallowing one there has been seen to commit half the work (docs/databases.md).

The limit is for servers that accept a statement and never answer: frozen (stopped, or out of disk), or behind a network
that has dropped the connection silently. Drivers wait for them without end: PostgreSQL's has no limit, MySQL's has one
that few projects set. So a thread watches the clock and hangs up; the statement fails as if the connection was lost.
"""

import contextlib
import logging
import math
import os
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.daemon import Daemon
from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from resourcepool.dialect import Trouble
from resourcepool.events import say
from resourcepool.exceptions import DatabaseUnavailable, NotMigrated, ResourcePoolError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

TRIES = 6
TRIES_FOR = 3.0  # seconds after which no further try is made
LONGEST = 6.0  # seconds for one try; more than the recommended wait for a locked row
A_LITTLE = 3.0  # seconds beyond the caller's timeout
AGAIN = 1.0  # seconds until the next session of the same try is hung up
BROKEN_OFF = "can't change 'autocommit' now"  # psycopg: the answer to a COMMIT was not waited for


class Unsettled(Exception):
    """Raised by ``settle``: the statement did not take effect; send it again."""


def retrying(
    connection: BaseDatabaseWrapper,
    send: Callable[[], Result],
    *,
    settle: Callable[[], Result] | None = None,
    busy: Callable[[], Result] | None = None,
) -> Result:
    """Call ``send`` until it succeeds: a few times, with growing random pauses, for ``TRIES_FOR``.

    Args:
        settle: called after a lost connection, when ``send`` may or may not have been committed; finds out, and
            returns the result, or raises ``Unsettled`` to send again. Without it, ``send`` must be safe to
            repeat.
        busy: the result if another transaction has the row locked, instead of another try.

    Raises:
        DatabaseUnavailable: the last try failed, too, or the database refuses.
        NotMigrated: the table, or a column of it, does not exist.
    """
    is_callers, unsure, gives_up_at = connection.in_atomic_block, False, monotonic() + TRIES_FOR
    handled = sys.exc_info()[1]
    try:
        for turn in range(TRIES):
            this = Try(connection)
            try:
                with this:
                    if unsure and settle:
                        try:
                            return settle()
                        except Unsettled:
                            unsure = False
                    return send()
            except (DatabaseError, InterfaceError) as error:
                if (signal := _hidden_by(error, connection, handled)) is not None:
                    raise signal from None
                trouble = dialect.trouble(connection, error)
                if trouble is Trouble.BUSY and busy is not None:
                    return busy()
                unsure = unsure or trouble is Trouble.DISCONNECTED
                is_last = turn == TRIES - 1 or (trouble is Trouble.REFUSED and not unsure)
                _raise_if_final(connection, error, trouble, this, is_last=is_last or monotonic() > gives_up_at)
                time.sleep(random.uniform(0, 0.03 * 2**turn))  # noqa: S311 (jitter, not a secret)
    except (DatabaseError, InterfaceError, ResourcePoolError, Unsettled):
        raise
    except BaseException:
        # Raised by a signal handler, perhaps between the driver's BEGIN or COMMIT and Django's record of it.
        if not is_callers:  # also if it is still in ours: Python may leave that later
            dialect.close_quietly(connection)
        raise
    raise AssertionError("unreachable")


def _hidden_by(
    error: Exception, connection: BaseDatabaseWrapper, handled: BaseException | None
) -> BaseException | None:
    """Return what a signal handler raised if ``error`` came of that: Django ends a transaction whose COMMIT has begun.

    Drivers raise errors because of others of their own, so that may be any Exception only where it is certain. What is
    ``handled`` already is none of ours.
    """
    found, is_certain = error.__context__, BROKEN_OFF in str(error)
    of_driver: type[Exception] = connection.Database.Error  # type: ignore[attr-defined]
    while found is not None and found is not handled:
        if not isinstance(found, Exception) or (is_certain and not isinstance(found, of_driver)):
            return found
        found = found.__context__
    return None


def _raise_if_final(
    connection: BaseDatabaseWrapper, error: Exception, trouble: Trouble | None, this: "Try", *, is_last: bool
) -> None:
    """Raise, unless the statement may be sent again."""
    said = _said("database", connection, error, this)
    if trouble is Trouble.NOT_MIGRATED:
        raise NotMigrated(_said("not_migrated", connection, error, this)) from error
    if trouble is None or connection.in_atomic_block:
        raise error
    if trouble is Trouble.DISCONNECTED:
        dialect.close_quietly(connection)  # the driver may have closed it already, and then raises
    if is_last or this.is_over:
        raise DatabaseUnavailable(said) from error
    logger.debug("%s; trying again", said)


def rows_read(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    """Return the rows of this SELECT; raises as ``retrying``."""
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))


def _said(code: str, connection: BaseDatabaseWrapper, error: Exception, this: "Try") -> str:
    """Return the database and its error message, without the excerpt of the statement that PostgreSQL adds."""
    said, _, _ = str(error).partition("\nLINE ")
    late = f" (no answer within {this.limit:g} s)" if this.is_over else ""
    return say(code, alias=repr(connection.alias), error=f"{said}{late}")


class Watched:
    """The waits of one thread.

    Attributes:
        limit: seconds that each of its tries may take; None: no limit.
        trying: the current try. Weak, because a thread that is interrupted on the way into a try, or out of it, may not
            remove it.
    """

    __slots__ = ("__weakref__", "limit", "trying")

    def __init__(self) -> None:
        self.limit: float | None = None
        self.trying: weakref.ref[Try] | None = None


class _Mine(threading.local):
    """The calling thread's waits."""

    def __init__(self) -> None:
        self.watched = Watched()
        watchdog.add(self.watched)


class answer_timeout:  # noqa: N801 (used like a function)
    """Limits how long each try of a statement by this thread waits for its answer in the block."""

    __slots__ = ("_before", "_mine", "_seconds")

    def __init__(self, seconds: float = LONGEST) -> None:
        """Prepare the block.

        Args:
            seconds: that a try may take; a lower limit around the block still applies.
        """
        self._seconds, self._mine = seconds, _mine.watched

    def __enter__(self) -> None:
        self._before = before = self._mine.limit
        self._mine.limit = self._seconds if before is None else min(before, self._seconds)

    def __exit__(self, *raised: object) -> None:
        self._mine.limit = self._before


class Try:
    """One try of a statement; without ``answer_timeout`` it has no limit.

    Attributes:
        limit: seconds that it may take; None: no limit.
        until: the time, by this process's clock, at which the limit is reached.
        hang_up_at: when to hang up, for the first time or again.
        is_hung_up: it took longer.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_connecting",
        "_mine",
        "connection",
        "hang_up_at",
        "is_hung_up",
        "limit",
        "until",
    )

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection, self.is_hung_up, self.until = connection, False, math.inf
        self._mine = _mine.watched
        self.limit = self._mine.limit if connection.vendor != "sqlite" else None

    def __enter__(self) -> None:
        if self.limit is None:
            return
        self._connecting: AbstractContextManager[None] | None = None
        if not dialect.is_socket_known(self.connection):
            if dialect.may_connect(self.connection):
                self._connecting = dialect.connecting_within(self.connection, self.limit)
                self._connecting.__enter__()
            dialect.know_socket(self.connection)
        self.until = self.hang_up_at = monotonic() + self.limit
        self._before, self._mine.trying = self._mine.trying, weakref.ref(self)
        # Checked here, because that takes a fraction of the calls that would check it again.
        if self.until < watchdog.wakeup.asked_for or not watchdog.thread.is_running:
            watchdog.look_at(self.until)

    def __exit__(self, *raised: object) -> None:
        if self.limit is None:
            return
        self._mine.trying = self._before  # a signal handler's try ends, and the interrupted one goes on
        if self.is_hung_up:  # noted before the check whether it is still under way
            watchdog.finish()
        if self._connecting is not None:
            self._connecting.__exit__(None, None, None)
        if self.is_hung_up and not self.connection.in_atomic_block:
            dialect.close_quietly(self.connection)  # also if the answer came at the very last moment

    @property
    def is_over(self) -> bool:
        """Whether it has reached its limit."""
        return self.limit is not None and monotonic() >= self.until


class Watchdog:
    """The thread that hangs up, and the threads that it watches; starts on first use, and again after a fork."""

    def __init__(self) -> None:
        self._all: dict[int, weakref.ref[Watched]] = {}
        self.wakeup = Wakeup()
        self.thread = Daemon("answers", self._run)
        self._hanging_up = threading.Lock()

    def add(self, one: Watched) -> None:
        """Watch this thread until it ends."""
        key, every = id(one), self._all
        every[key] = weakref.ref(one, lambda _: every.pop(key, None))

    def look_at(self, moment: float) -> None:
        """Look at that moment, at the latest, which tries have reached their limits."""
        if not self.thread.is_running:
            with contextlib.suppress(RuntimeError):  # no more threads: nothing has a limit
                self.thread.see_to()  # its first look finds the thread that asks for this
        else:
            self.wakeup.bring_forward(moment)

    def finish(self) -> None:
        """Return once no connection is being hung up."""
        with self._hanging_up:
            pass

    def _run(self) -> None:
        while True:
            self.wakeup.reset()
            try:
                look_at = self._look(monotonic())
            except Exception:
                logger.exception("nobody could be hung up just now")
                look_at = monotonic() + AGAIN
            self.wakeup.sleep_until(look_at)

    def _look(self, now: float) -> float:
        """Hang up tries that have reached their limits; return when to look again."""
        look_at = math.inf
        for found in list(self._all.values()):
            if (watched := found()) is None or (trying := watched.trying) is None or (one := trying()) is None:
                continue
            if one.hang_up_at <= now:
                with self._hanging_up:
                    one.is_hung_up, one.hang_up_at = True, now + AGAIN  # it may begin another session
                    if watched.trying is trying:
                        dialect.hang_up(one.connection)
            look_at = min(look_at, one.hang_up_at)
        return look_at


def _after_fork() -> None:
    global _mine  # noqa: PLW0603
    watchdog.__init__()  # type: ignore[misc]  # the parent's thread, lock and tries are not the child's
    _mine = _Mine()


watchdog = Watchdog()
_mine = _Mine()
os.register_at_fork(after_in_child=_after_fork)
