"""Which session of MariaDB or MySQL has a row locked: the server tells only while another session waits for it."""

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

# Seconds between two looks. The server makes its answer anew only when nobody has asked for a tenth of a second: two
# who looked at that pace, each in the pauses of the other, would see the same old one for ever.
PAUSES = (0.12, 0.4)
CONNECTED_WITHIN = 5.0  # seconds
MOST = 3  # rows whose session is looked for; each takes up to a second

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
    """Return {key of a locked row: the session; None: this user may not see it}, on connections of its own."""
    own = private_connection(connection.alias)
    look = LOCKED_BY if connection.mysql_is_mariadb else LOCKED_BY_ON_MYSQL  # type: ignore[attr-defined]
    places = ", ".join(["%s"] * len(keys))
    free = f"SELECT {pk} FROM {table} WHERE {pk} IN ({places}) FOR UPDATE SKIP LOCKED"  # noqa: S608 (quoted names)
    there = f"SELECT {pk} FROM {table} WHERE {pk} IN ({places})"  # noqa: S608
    try:
        unlocked = {key for (key,) in rows(own, free, [*keys])}
        locked = [key for (key,) in rows(own, there, [*keys]) if key not in unlocked]
        lock = f"SELECT 1 FROM {table} WHERE {pk} = %s FOR UPDATE"  # noqa: S608
        found: dict[Any, Session | None] = dict.fromkeys(locked[MOST:])
        for key in locked[:MOST]:
            _ask(own, look, lock, key, found)
        return found
    finally:
        discard(own)


def _ask(own: BaseDatabaseWrapper, look: str, lock: str, key: Any, into: dict[Any, Session | None]) -> None:
    """Wait for the row in a thread, for a second at most, and ask meanwhile for whom; it may be free by now."""
    numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
    waits = threading.Thread(target=partial(_wait, own.alias, lock, key, numbers), daemon=True)
    waits.start()
    found: Sequence[Any] = ()
    with contextlib.suppress(DatabaseError, InterfaceError, queue.Empty):  # this user may not ask, for example
        number = numbers.get(timeout=CONNECTED_WITHIN)
        while not found and waits.is_alive():
            found = rows(own, look, [number])
            waits.join(random.uniform(*PAUSES))  # noqa: S311 (no secret)
    waits.join()
    if found:
        session, client, command, seconds = found[0]
        idle = float(seconds) if command == "Sleep" and seconds is not None else None
        into[key] = Session(int(session), client or "", idle, f"KILL {session}")
    elif numbers.empty():
        into[key] = None


def _wait(alias: str, lock: str, key: Any, numbers: "queue.SimpleQueue[int]") -> None:
    own = private_connection(alias)
    with contextlib.suppress(DatabaseError, InterfaceError):  # it waits in vain
        numbers.put(rows(own, "SELECT CONNECTION_ID()")[0][0])
        rows(own, lock, [key])
        numbers.put(0)  # it is not locked any more
    discard(own)
