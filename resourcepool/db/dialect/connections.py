"""Connections to the database server: short timeouts, shutdown by another thread, and removal in a forked child."""

import contextlib
import os
import socket
import sys
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.views.decorators.debug import sensitive_variables

from resourcepool.db.dialect.base import Dialect, ErrorKind
from resourcepool.db.dialect.mysql import MySQL
from resourcepool.db.dialect.postgresql import PostgreSQL
from resourcepool.db.dialect.sqlite import SQLite
from resourcepool.exceptions import ResourcePoolError

_DIALECTS: dict[str, Dialect] = {"mysql": MySQL(), "postgresql": PostgreSQL(), "sqlite": SQLite()}


def supports(connection: BaseDatabaseWrapper) -> bool:
    """Whether this package supports the database of ``connection``."""
    return connection.vendor in _DIALECTS


def of(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of ``connection``; raises ResourcePoolError for an unsupported database."""
    try:
        return _DIALECTS[connection.vendor]
    except KeyError:
        supported = "MySQL/MariaDB, PostgreSQL and SQLite"
        raise ResourcePoolError(
            f"database {connection.alias!r} is {connection.vendor}; resourcepool runs on {supported}"
        ) from None


def error_kind(connection: BaseDatabaseWrapper, error: Exception) -> ErrorKind | None:
    """Return the kind of ``error``, raised by a statement on ``connection``; None: retrying cannot help."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    return of(connection).error_kind(error)


def refuses_text(connection: BaseDatabaseWrapper, error: Exception) -> bool:
    """Whether a statement failed because the database or the connection cannot represent a character."""
    return isinstance(error, UnicodeEncodeError) or of(connection).refuses_text(error)


LOCK_WAIT = 1  # whole seconds a background thread waits for a locked row
# Our attributes on Django's connection objects: the session's socket, and the session if this package opened it.
DESCRIPTOR, OWN = "_resourcepool_descriptor", "_resourcepool_own"

# Strong references: in a forked child, garbage collection would close connections of the parent's threads.
_opened: list[BaseDatabaseWrapper] = []
_abandoned: list[Any] = []


@sensitive_variables()
def private_connection(alias: str, *, has_lock_limit: bool = True) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one thread, with short timeouts if its database is supported.

    Args:
        has_lock_limit: waits for a locked row only for a moment; else as long as the project's settings say.
    """
    connection = connections.create_connection(alias)
    _opened.append(connection)
    if not supports(connection):  # it has no leases, but a signal receiver may use it
        return connection
    dialect = of(connection)
    options = {**connection.settings_dict["OPTIONS"], **dialect.timeouts}
    if has_lock_limit:
        options |= dialect.lock_options
    options.pop("pool", None)
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    initialise = connection.init_connection_state

    def initialise_and_limit() -> None:
        initialise()
        with contextlib.suppress(AttributeError):  # SQLite has no socket
            number = connection.connection.fileno()
            vars(connection)[DESCRIPTOR] = number, os.fstat(number).st_ino
        if has_lock_limit:
            limit_lock_waits(connection)

    # Django has no hook per connection; the signal connection_created is sent for every one.
    setattr(connection, "init_connection_state", initialise_and_limit)  # noqa: B010
    return connection


def limit_lock_waits(connection: BaseDatabaseWrapper) -> None:
    """Make this session wait only briefly for a locked row."""
    statement = of(connection).lock_wait
    if statement:
        execute(connection, statement, {"seconds": LOCK_WAIT})


def execute(connection: BaseDatabaseWrapper, sql: str, params: Any = None) -> None:
    """Execute a statement without a result."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def close_quietly(connection: BaseDatabaseWrapper) -> None:
    """Close ``connection`` in whatever state it is."""
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()


def discard(connection: BaseDatabaseWrapper) -> None:
    """Close a private connection for good."""
    close_quietly(connection)
    with contextlib.suppress(ValueError):  # in a child that was forked meanwhile
        _opened.remove(connection)


def remember_own_session(connection: BaseDatabaseWrapper) -> None:
    """Remember that a statement of this package opened the current session (``close_own_session``)."""
    vars(connection)[OWN] = connection.connection


def close_own_session(connection: BaseDatabaseWrapper) -> None:
    """Close the session if this package opened it and it has no open transaction."""
    is_own = connection.connection is not None and vars(connection).get(OWN) is connection.connection
    if is_own and connection.vendor != "sqlite" and not _is_in_transaction(connection):
        close_quietly(connection)


def shutdown_socket(connection: Any) -> None:
    """Shut down the socket of a thread that waits for an answer; its statement fails like on a lost connection.

    MySQL's driver does not tell another thread its socket, so there it works for private connections alone.
    """
    if (driver := connection.connection) is None:
        return
    with contextlib.suppress(Exception):  # it is closed already
        number, inode = vars(connection).get(DESCRIPTOR) or (driver.fileno(), None)
        with socket.socket(fileno=os.dup(number)) as end:
            # The inode, because the number of a closed socket may be reused.
            if inode in (None, os.fstat(end.fileno()).st_ino):
                end.shutdown(socket.SHUT_RDWR)


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    return connection.in_atomic_block or not connection.autocommit


def close_files() -> None:
    """Before a fork: close this thread's SQLite files without an open transaction.

    A child inherits the library's record of its file locks, but not the locks. The parent would then remove the log on
    close, and with it the child's commits (howtocorrupt.html, 2.6).
    """
    for connection in connections.all(initialized_only=True):
        is_idle = not _is_in_transaction(connection)
        if connection.vendor == "sqlite" and is_idle and not _lives_in_memory(connection):
            close_quietly(connection)


def drop_inherited_connections() -> None:
    """In a forked child: drop the parent's connections without sending anything to the database server.

    Parent and child share the sockets. If both use one, replies get mixed up; if the child closes it, the parent is
    logged out. So the child's descriptor is redirected to /dev/null, and the next query opens a new session.
    """
    ours = [
        connection for connection in connections.all(initialized_only=True) if not connection.in_atomic_block
    ]
    for connection in [*ours, *_opened]:
        driver = connection.connection
        if driver is None or _lives_in_memory(connection):
            continue
        _abandoned.append(driver)
        connection.connection = None
        # A driver in the middle of a statement does not tell its descriptor; private ones are remembered.
        with contextlib.suppress(Exception):
            number, _ = vars(connection).get(DESCRIPTOR) or (driver.fileno(), None)
            redirect_to_devnull(number)
    _opened.clear()
    # psycopg's pools: their idle sessions are the parent's, and their threads do not exist in the child.
    postgresql = sys.modules.get("django.db.backends.postgresql.base")
    pools: dict[str, Any] = getattr(getattr(postgresql, "DatabaseWrapper", None), "_connection_pools", {})
    _abandoned.extend(pools.values())
    pools.clear()


def redirect_to_devnull(descriptor: int) -> None:
    """In a forked child: redirect the parent's socket to /dev/null, so that closing it does not end the session."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _lives_in_memory(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "is_in_memory_db", lambda: False)())
