"""Connections to the database server: short timeouts, shutdown by another thread, and removal in a forked child."""

import contextlib
import math
import os
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy
from django.views.decorators.debug import sensitive_variables

from resourcepool.dialect.supported import of, supports

LOCK_WAIT = 1  # whole seconds a background thread waits for a locked row
CONNECT = "connect_timeout"
BEGIN = "get_new_connection"
SOCKET = "_resourcepool_socket"  # our attributes on Django's connection objects
SETTINGS = "_resourcepool_settings"

# Strong references: in a forked child, garbage collection would close connections of the parent's threads.
_opened: list[BaseDatabaseWrapper] = []
_abandoned: list[Any] = []


class _Socket(NamedTuple):
    """The socket of one driver session."""

    driver: Any
    number: int | None  # None: unknown
    inode: int | None
    is_ours: bool  # the session was opened by a statement of this package


@sensitive_variables()
def private_connection(alias: str, *, has_lock_limit: bool = True) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one thread, with short timeouts if its database is supported.

    Args:
        is_hasty: waits for a locked row only for a moment; else as long as the project's settings say.
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
        remember_socket(connection)
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


def remember_socket(connection: BaseDatabaseWrapper) -> None:
    """Remember the connection's socket for ``shutdown_socket``: MySQL's driver does not tell another thread."""
    if connection.connection is not None and _socket_of(connection) is None:
        _remember(connection, connection.connection, is_ours=False)


def is_socket_known(connection: Any) -> bool:
    """Whether the next statement uses an open session whose socket is known."""
    known = connection.__dict__.get(SOCKET)  # not by ``_socket_of``, because every statement calls this
    if known is None or known.driver is not connection.connection:
        return False
    return bool(connection.health_check_done or not connection.health_check_enabled)


def may_connect(connection: Any) -> bool:
    """Whether the next statement may open a session: there is none, or Django checks its health first."""
    is_unsure = connection.health_check_enabled and not connection.health_check_done
    return connection.connection is None or is_unsure


def shutdown_socket(connection: BaseDatabaseWrapper) -> None:
    """Shut down the socket of a thread that waits for an answer; its statement fails like on a lost connection."""
    known = _socket_of(connection)  # a session returned to a pool may belong to another thread by now
    if known is None or known.number is None:
        return
    # OSError: it is closed already.
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(known.number)) as end:
        # The inode, because after the end of the session the number may be reused.
        if os.fstat(end.fileno()).st_ino == known.inode:
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def limit_connect_time(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Limit the time to open a session in this block to ``seconds``, and remember its socket.

    It replaces the connection object's ``get_new_connection`` until the end of the block. Later hooks (the signal
    ``connection_created``, an ``execute_wrapper``) run after Django's first statements of a session, when the database
    server may already be frozen; and mysqlclient does not tell its socket to another thread.
    """
    begin = connection.get_new_connection
    if getattr(begin, "func", None) is _begin:  # inside another such block
        yield
        return
    # Not in a local variable, because error reports show these, and it contains the password.
    connection.__dict__[SETTINGS] = connection.settings_dict
    _limit_connecting(connection, seconds)
    replaced = connection.__dict__.get(BEGIN)  # of a tool that measures connections
    connection.__dict__[BEGIN] = partial(_begin, connection, begin)
    try:
        yield
    finally:
        connection.settings_dict = connection.__dict__.pop(SETTINGS)
        del connection.__dict__[BEGIN]
        if replaced is not None:
            connection.__dict__[BEGIN] = replaced


@sensitive_variables()
def _limit_connecting(connection: BaseDatabaseWrapper, seconds: float) -> None:
    before = connection.settings_dict
    options = before["OPTIONS"]
    if supports(connection) and CONNECT in of(connection).timeouts and not options.get("pool"):
        limit = math.ceil(min(seconds, float(options.get(CONNECT) or seconds)))
        connection.settings_dict = {**before, "OPTIONS": {**options, CONNECT: limit}}


def close_own_session(connection: BaseDatabaseWrapper) -> None:
    """Close the session if this package opened it (``limit_connect_time``) and it has no open transaction."""
    known = _socket_of(connection)
    if known is not None and known.is_ours and not _is_in_transaction(connection):
        close_quietly(connection)


@sensitive_variables()
def _begin(connection: BaseDatabaseWrapper, begin: Callable[[Any], Any], conn_params: Any) -> Any:
    driver = begin(conn_params)
    _remember(connection, driver, is_ours=True)
    return driver


def _remember(connection: BaseDatabaseWrapper, driver: Any, *, is_ours: bool) -> None:
    number = inode = None
    with contextlib.suppress(Exception):  # the driver has no fileno
        number = driver.fileno()
        inode = os.fstat(number).st_ino
    vars(connection)[SOCKET] = _Socket(driver, number, inode, is_ours)


def _socket_of(connection: BaseDatabaseWrapper) -> _Socket | None:
    known: _Socket | None = vars(connection).get(SOCKET)
    return known if known is not None and known.driver is connection.connection else None


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    return connection.in_atomic_block or not connection.autocommit


def close_files() -> None:
    """Before a fork: close this thread's SQLite files without an open transaction.

    A child inherits the library's record of its file locks, but not the locks. The parent would then remove the log on
    close, and with it the child's commits (howtocorrupt.html, 2.6).
    """
    for connection in _of_this_thread():
        is_idle = not _is_in_transaction(connection)
        if connection.vendor == "sqlite" and is_idle and not _lives_in_memory(connection):
            close_quietly(connection)


def drop_inherited_connections() -> None:
    """In a forked child: drop the parent's connections without sending anything to the database server.

    Parent and child share the sockets. If both use one, replies get mixed up; if the child closes it, the parent is
    logged out. So the child's descriptor is redirected to /dev/null, and the next query opens a new session.
    """
    ours = [connection for connection in _of_this_thread() if not connection.in_atomic_block]
    for connection in [*ours, *_opened]:
        driver, known = connection.connection, _socket_of(connection)
        if driver is None or _lives_in_memory(connection):
            continue
        _abandoned.append(driver)
        connection.connection = None
        # A driver in the middle of a statement does not tell its descriptor; private ones are remembered.
        with contextlib.suppress(Exception):
            redirect_to_devnull((known and known.number) or driver.fileno())
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


def _of_this_thread() -> list[BaseDatabaseWrapper]:
    # A proxy is a placeholder for a connection that has not been made yet.
    return [each for each in connections.all(initialized_only=True) if not isinstance(each, ConnectionProxy)]


def _lives_in_memory(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "is_in_memory_db", lambda: False)())
