"""Replacements for the environment of the package: simulated clocks, sleep, threads, hints, a server."""

import logging
import threading
import time
from collections import UserDict
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection, connections

from resourcepool import hints
from resourcepool.db import background, dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.dialect.sqlite import SQLite
from resourcepool.db.threads import Daemon, SignalSafeEvent, Wakeup
from resourcepool.leases import shutdown, terms
from resourcepool.leases.keeper import Keeper, keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import assignment, pacing, poll, turn
from tests.simulation import schedule
from tests.simulation.database import CUT, Connection
from tests.simulation.schedule import Memory

QUARANTINE = {"base": 0.5, "cap": 3.0}  # seconds
TICKET_TTL = 1.2  # seconds: shorter than the longer ones of the leases
REMEMBERED = ("_last_held", "_last_seen")  # by a pool
USED_BATCH = 2  # tickets of served waiters that are removed together


class PerProcess(UserDict[Any, Any]):
    """A dictionary of a module, of which each process has its own."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_lines, _pollers, _returned_at, _expected = (PerProcess() for _ in range(4))


def install() -> None:
    """Replace the environment of the package in this process, permanently; create the tables."""
    time.sleep = lambda seconds: schedule.now_running().sleep(seconds)
    threading.Event.wait = _wait_in_time(threading.Event.wait)  # type: ignore[method-assign]
    SignalSafeEvent.wait = _rung_in_time  # type: ignore[method-assign]
    Wakeup._receive = _heard_in_time(Wakeup._receive)  # type: ignore[method-assign]
    pacing._lines, poll._pollers, turn.USED_BATCH = _lines, _pollers, USED_BATCH  # type: ignore[assignment]
    assignment._returned_at, hints._expected = _returned_at, _expected  # type: ignore[assignment]
    turn.Turns._notice = _if_heard(turn.Turns._notice)  # type: ignore[method-assign]
    hints.address = lambda: schedule.now_running().current.process.name
    hints.is_enabled = lambda: schedule.now_running().habits.hinted
    hints.send, hints.listen = _send_hint, lambda *_: None
    background.start = _start
    Daemon.ensure_started = lambda _: None  # type: ignore[method-assign]  # the schedule does their work
    shutdown.at_exit = lambda *_: None
    dialect.error_kind = _with_cuts(dialect.error_kind)
    SQLite.exists_is_slow = True  # as on the databases with a server
    terms = {"QUARANTINE": QUARANTINE, "TICKET_TTL": TICKET_TTL}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, **terms}
    logging.getLogger("resourcepool").handlers = [_Objection(logging.ERROR)]
    logging.getLogger("resourcepool").setLevel(logging.ERROR)
    logging.getLogger("resourcepool").propagate = False
    options = connections.databases["default"]["OPTIONS"]
    options |= {"factory": Connection, "timeout": 0}
    options["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
    with connection.schema_editor() as editor:
        editor.create_model(Proxy)
        editor.create_model(Ticket)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE target (pk integer PRIMARY KEY, fence integer, writes integer)")


def memory() -> Memory:
    """Return the empty memory of a process that has just started."""
    registries = {one: PerProcess() for one in (_lines, _pollers, _returned_at, _expected)}
    fresh = {keeper: Keeper(), **registries}
    return {**{owner: dict(new.__dict__) for owner, new in fresh.items()}, Proxy.pool: dict(_pool())}


def begin_names() -> None:
    """Restart the numbering of default holder names, so that traces are reproducible."""
    terms._reset()
    terms._host, terms._incarnation = "host", "sim"


@cache
def _pool() -> dict[str, Any]:
    return {name: value for name, value in Proxy.pool.__dict__.items() if name not in REMEMBERED}


def _wait_in_time(wait: Callable[..., bool]) -> Callable[..., bool]:
    """``Event.wait``, while other actors run."""

    def until_set(event: threading.Event, timeout: float | None = None) -> bool:
        if (running := schedule.stage.running) is None:
            return wait(event, timeout)
        if not event.is_set():
            running.sleep(schedule.FOR_EVER if timeout is None else timeout, until=event.is_set)
        return event.is_set()

    return until_set


def _rung_in_time(bell: SignalSafeEvent, seconds: float) -> bool:
    """``SignalSafeEvent.wait``, while other actors run."""
    if bell._lock.locked():
        schedule.now_running().sleep(seconds, until=lambda: not bell._lock.locked())
    return bell._lock.acquire(blocking=False)


def _heard_in_time(hear: Callable[[Wakeup, float], bool]) -> Callable[[Wakeup, float], bool]:
    """``Wakeup._receive``, while other actors run."""

    def heard(wakeup: Wakeup, seconds: float) -> bool:
        if seconds > 0:
            schedule.now_running().sleep(seconds, until=lambda: not wakeup._requests.empty())
        return hear(wakeup, 0)

    return heard


def _if_heard(notice: Callable[..., None]) -> Callable[..., None]:
    def hear(*args: object) -> None:
        if schedule.now_running().is_heard():
            notice(*args)

    return hear


def _send_hint(address: str, _per_second: float = 0.0) -> None:
    running = schedule.now_running()
    if not running.habits.hinted:
        return
    running.note(f"a hint for {address or 'nobody'}")
    for process in {actor.process.name: actor.process for actor in running.actors}.values():
        if process.name == address and not process.is_dead:
            process.swap_in()
            hints.wake_all()
    running.current.process.swap_in()


class _Thread:
    """A placeholder for a thread whose work the schedule does itself."""

    def is_alive(self) -> bool:
        return True


def _start(name: str, work: Callable[[], object]) -> Any:
    if name == "on-lost":
        work()
    return _Thread()


def _with_cuts(trouble: Callable[..., ErrorKind | None]) -> Callable[..., ErrorKind | None]:
    def also_cut(where: Any, error: Exception) -> ErrorKind | None:
        return ErrorKind.DISCONNECTED if CUT in str(error) else trouble(where, error)

    return also_cut


class _Objection(logging.Handler):
    """Treats logged errors as violations: the package logs only unexpected errors."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else ""
        schedule.now_running().blame(f"(6) logged: {record.getMessage()} {error!r}")
