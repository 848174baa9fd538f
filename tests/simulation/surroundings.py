"""What the package finds instead of the operating system: simulated clocks, sleep, threads and a server that can go."""

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection, connections

from resourcepool import dialect
from resourcepool.dialect import Trouble
from resourcepool.leases import background, holder, shutdown
from resourcepool.leases.chores import Chores, chores
from resourcepool.leases.keeper import Keeper, keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.resources.desk import Desk
from tests.simulation import schedule
from tests.simulation.database import CUT, Connection
from tests.simulation.schedule import Memory

QUARANTINE = {"base": 0.5, "cap": 3.0}  # seconds


def install() -> None:
    """Put the simulation around the package, in this process, for good; make the tables."""
    time.sleep = lambda seconds: schedule.now_running().sleep(seconds)
    time.monotonic = time.clock_gettime = _monotonic
    background.start = _start
    shutdown.at_exit = lambda *_: None
    dialect.trouble = _with_cuts(dialect.trouble)
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "QUARANTINE": QUARANTINE}
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
    """Return what a process that has just started remembers: nothing."""
    pool = {**_pool(), "_desk": Desk(Proxy.pool)}
    return {keeper: Keeper().__dict__, chores: Chores().__dict__, Proxy.pool: pool}


def begin_names() -> None:
    """Let the default holders' names begin anew, so that a trace is the same every time."""
    holder._begin()
    holder._host, holder._incarnation = "host", "sim"


@cache
def _pool() -> dict[str, Any]:
    return {name: value for name, value in Proxy.pool.__dict__.items() if name != "_desk"}


def _monotonic(*_: int) -> float:
    return schedule.stage.running.monotonic() if schedule.stage.running is not None else time.perf_counter()


class _Thread:
    """Stands for a thread whose work the schedule does itself."""

    def is_alive(self) -> bool:
        return True


def _start(name: str, work: Callable[[], object]) -> Any:
    if name == "on-lost":
        work()
    return _Thread()


def _with_cuts(trouble: Callable[..., Trouble | None]) -> Callable[..., Trouble | None]:
    def also_cut(where: Any, error: Exception) -> Trouble | None:
        return Trouble.DISCONNECTED if CUT in str(error) else trouble(where, error)

    return also_cut


class _Objection(logging.Handler):
    """The package logs an error only for what it did not expect; neither do we."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else ""
        schedule.now_running().blame(f"(6) logged: {record.getMessage()} {error!r}")
