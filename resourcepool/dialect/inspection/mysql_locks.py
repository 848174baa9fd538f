"""Finds the session of MariaDB or MySQL that locks a row; the server shows it only while another session waits."""

import contextlib
import queue
import random
import threading
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.connections import discard, private_connection
from resourcepool.dialect.inspection.base import Session, rows

# Seconds between two queries, at random. The server refreshes the answer only after a tenth of a second without
# queries, so two clients that query in turn at a fixed pace would see the same old answer for ever.
PAUSES = (0.12, 0.4)
CONNECT_TIMEOUT = 5.0  # seconds
MAX_ROWS = 3  # rows to search the session of; each takes up to a second

LOCKED_BY = """
    SELECT first.trx_mysql_thread_id, one.host, one.command, one.time
    FROM information_schema.innodb_lock_waits w
    JOIN information_schema.innodb_trx next ON next.trx_id = w.requesting_trx_id
    JOIN information_schema.innodb_trx first ON first.trx_id = w.blocking_trx_id AND first.trx_state <> 'LOCK WAIT'
    LEFT JOIN information_schema.processlist one ON one.id = first.trx_mysql_thread_id
    WHERE next.trx_mysql_thread_id = %s
"""
LOCKED_BY_ON_MYSQL = """
    SELECT w.blocking_pid, one.host, one.command, one.time
    FROM sys.innodb_lock_waits w
    JOIN information_schema.innodb_trx first ON first.trx_id = w.blocking_trx_id AND first.trx_state <> 'LOCK WAIT'
    LEFT JOIN information_schema.processlist one ON one.id = w.blocking_pid
    WHERE w.waiting_pid = %s
"""


def lockers(
    connection: BaseDatabaseWrapper, table: str, pk: str, keys: Collection[Any]
) -> dict[Any, Session | None]:
    """Return {key of a locked row: its session; None: this user may not see it}, using private connections."""
    own = private_connection(connection.alias)
    query = LOCKED_BY if connection.mysql_is_mariadb else LOCKED_BY_ON_MYSQL  # type: ignore[attr-defined]
    places = ", ".join(["%s"] * len(keys))
    free = f"SELECT {pk} FROM {table} WHERE {pk} IN ({places}) FOR UPDATE SKIP LOCKED"  # noqa: S608 (quoted names)
    existing = f"SELECT {pk} FROM {table} WHERE {pk} IN ({places})"  # noqa: S608
    try:
        unlocked = {key for (key,) in rows(own, free, [*keys])}
        locked = [key for (key,) in rows(own, existing, [*keys]) if key not in unlocked]
        lock = f"SELECT 1 FROM {table} WHERE {pk} = %s FOR UPDATE"  # noqa: S608
        sessions: dict[Any, Session | None] = dict.fromkeys(locked[MAX_ROWS:])
        for key in locked[:MAX_ROWS]:
            _find_locker(own, query, lock, key, sessions)
        return sessions
    finally:
        discard(own)


def _find_locker(
    own: BaseDatabaseWrapper, query: str, lock: str, key: Any, into: dict[Any, Session | None]
) -> None:
    """Wait for the row in a thread, up to a second, and query meanwhile which session blocks it."""
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    waits = threading.Thread(target=partial(_wait, own.alias, lock, key, numbers), daemon=True)
    waits.start()
    lockers: Sequence[Any] = ()
    with contextlib.suppress(DatabaseError, InterfaceError, queue.Empty):  # e.g. this user has no permission
        number = numbers.get(timeout=CONNECT_TIMEOUT)
        while not lockers and waits.is_alive():
            lockers = rows(own, query, [number])
            waits.join(random.uniform(*PAUSES))  # noqa: S311 (no secret)
    waits.join()
    if lockers:
        session, client, command, seconds = lockers[0]
        idle = float(seconds) if command == "Sleep" and seconds is not None else None
        into[key] = Session(int(session), client or "", idle, f"KILL {session}")
    elif numbers.empty():
        into[key] = None


def _wait(alias: str, lock: str, key: Any, numbers: "queue.SimpleQueue[int]") -> None:
    own = private_connection(alias)
    with contextlib.suppress(DatabaseError, InterfaceError):  # e.g. the lock wait timed out
        numbers.put(rows(own, "SELECT CONNECTION_ID()")[0][0])
        rows(own, lock, [key])
        numbers.put(0)  # the row is no longer locked
    discard(own)
