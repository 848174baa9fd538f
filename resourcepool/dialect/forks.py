"""What becomes of open connections when the process forks."""

import contextlib
import os
import sys
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy

from resourcepool.dialect.private import close_quietly, descriptors, opened

_abandoned: list[Any] = []  # strong references, like ``opened``


def close_files() -> None:
    """Just before a fork: close the SQLite files that this thread has open and is in no transaction on.

    A child inherits what the library remembers of its locks on a file, but not the locks. The parent, seeing itself
    alone, would remove the log when it closes, and with it what the child has committed (howtocorrupt.html, 2.6).
    """
    for connection in _of_this_thread():
        idle = not connection.in_atomic_block and connection.autocommit
        if connection.vendor == "sqlite" and idle and not _lives_in_memory(connection):
            close_quietly(connection)


def abandon_inherited_connections() -> None:
    """In a forked child: let go of the parent's connections without a word to the server.

    Parent and child share the socket. Used by both it mixes up replies; closed by the child it logs the
    parent out. So the child's end is pointed at /dev/null and the next query connects anew.
    """
    ours = [connection for connection in _of_this_thread() if not connection.in_atomic_block]
    for connection in [*ours, *opened]:
        driver = connection.connection
        if driver is None or _lives_in_memory(connection):
            continue
        _abandoned.append(driver)
        connection.connection = None
        # A driver whose thread was in the middle of a statement refuses to tell; private ones were asked before.
        with contextlib.suppress(Exception):
            point_at_nothing(descriptors.get(id(driver)) or driver.fileno())
    opened.clear()
    # A pool of psycopg's: its idle sessions are the parent's, and the threads that serve it are not in the child.
    postgresql = sys.modules.get("django.db.backends.postgresql.base")
    pools: dict[str, Any] = getattr(getattr(postgresql, "DatabaseWrapper", None), "_connection_pools", {})
    _abandoned.extend(pools.values())
    pools.clear()


def _of_this_thread() -> list[BaseDatabaseWrapper]:
    made = connections.all(initialized_only=True)
    return [
        one for one in made if not isinstance(one, ConnectionProxy)
    ]  # that stands for one that is not made yet


def _lives_in_memory(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "is_in_memory_db", lambda: False)())


def point_at_nothing(descriptor: int) -> None:
    """In a forked child: make this socket of the parent's lead to /dev/null, so that closing it ends no session."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)
