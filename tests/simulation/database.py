"""SQLite in the simulation: the real library, a simulated clock, and a step around each statement.

The clock replaces SQLite's functions STRFTIME and JULIANDAY, so the package's SQL runs unchanged. A reply
is complete when ``execute`` returns, as from a server: SQLite itself commits an UPDATE .. RETURNING only when
its rows have been fetched.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from django.db.backends.sqlite3.base import SQLiteCursorWrapper

from tests.simulation import schedule

CUT = "simulated: the server closed the connection"
DAY = "2030-01-01 "  # when everything happens; moments are whole milliseconds since its midnight
MS_PER_DAY = 86_400_000


def text(moment: int) -> str:
    """Return a time as SQLite writes it."""
    seconds, ms = divmod(moment, 1_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{DAY}{hour:02}:{minute:02}:{second:02}.{ms:03}"


def moment(stored: str) -> int:
    """Parse the result of ``text``; -1 for times before the simulated day."""
    if not stored.startswith(DAY):
        return -1
    ms = stored[20:23].ljust(3, "0")
    return int(stored[11:13]) * 3_600_000 + int(stored[14:16]) * 60_000 + int(stored[17:19]) * 1_000 + int(ms)


def _now() -> int:
    return schedule.stage.running.now if schedule.stage.running is not None else 0


def _strftime(form: str, start: str, shift: str = "0 seconds") -> str:
    assert (form, start) == ("%Y-%m-%d %H:%M:%f", "now"), (form, start)
    return text(_now() + round(float(shift.removesuffix(" seconds")) * 1_000))


def _julianday(what: str) -> float:
    return (_now() if what == "now" else moment(what)) / MS_PER_DAY


class Connection(sqlite3.Connection):
    """A session that can be cut, and whose statements are steps of the schedule."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_cut = False
        self.create_function("STRFTIME", -1, _strftime)
        self.create_function("JULIANDAY", -1, _julianday)
        if schedule.stage.running is not None:
            schedule.stage.running.current.worker.driver = self

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(Cursor)

    def commit(self) -> None:
        if self.in_transaction:
            step(self, "COMMIT", super().commit)

    def rollback(self) -> None:
        if self.is_cut:
            raise sqlite3.OperationalError(CUT)
        super().rollback()

    def end_transaction(self) -> None:
        """Leave nothing open to the next actor."""
        with contextlib.suppress(sqlite3.ProgrammingError):  # it has been closed
            super().rollback()

    def roll_back_for_good(self) -> None:
        """Roll back, as a server does after the client has disconnected."""
        self.end_transaction()
        self.is_cut = True


class Cursor(SQLiteCursorWrapper):
    """Fetches all rows before ``execute`` returns."""

    _rows: list[Any]

    def execute(self, query: str, params: Any = None) -> Any:
        def send() -> None:
            super(Cursor, self).execute(query, params)
            self._rows = super(Cursor, self).fetchall() if self.description else []

        step(self.connection, query, send, params)
        return self

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        taken, self._rows = self._rows[:size], self._rows[size:]
        return taken

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self._rows))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


def brief(sql: str, params: Any) -> str:
    """Return a statement in short form, for the trace."""
    short = sql.replace("STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now'", "AT(now").replace("AT(now)", "NOW")
    given = list(params.values()) if isinstance(params, dict) else list(params or ())
    return f"{short.replace(chr(34), '')} {given or ''}".rstrip()


def step(driver: Connection, sql: str, send: Callable[[], None], params: Any = None) -> None:
    """Run one statement, with a turn of the schedule before and after it; inform the operation."""
    running = schedule.stage.running
    if running is None or sql.startswith("PRAGMA"):  # making the tables, opening a session
        send()
        return
    running.turn()
    running.steps += 1
    actor = running.current
    if driver.is_cut:
        actor.operation.cut()
        raise sqlite3.OperationalError(CUT)
    shown = "" if running.trace is None else brief(sql, params)
    if (breaks := running.breaks()) == "before":
        running.note(f"{shown} -> never arrived")
        _cut(driver, actor)
    actor.operation.sending(sql)
    try:
        send()
    except sqlite3.OperationalError as error:
        running.note(f"{shown} -> {error}")
        actor.operation.failed()
        raise
    actor.operation.sent(sql, is_open=driver.in_transaction)
    if breaks:
        running.note(f"{shown} -> done, but the reply is lost")
        _cut(driver, actor)
    running.note(shown)
    running.turn()


def _cut(driver: Connection, actor: schedule.Actor) -> None:
    driver.roll_back_for_good()
    actor.operation.cut()
    raise sqlite3.OperationalError(CUT)
