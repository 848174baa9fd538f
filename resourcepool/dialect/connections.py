"""Connections to the server: with short timeouts, hung up by another thread, and abandoned in a forked child."""

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

LOCK_WAIT = 1  # whole seconds that a background thread waits for a locked row
CONNECT = "connect_timeout"
BEGIN = "get_new_connection"
SOCKET = "_resourcepool_socket"  # Django's connection objects have no such attributes
SETTINGS = "_resourcepool_settings"

# Strong references: collecting a connection of the parent's threads in a child would close it.
_opened: list[BaseDatabaseWrapper] = []
_abandoned: list[Any] = []


class _Socket(NamedTuple):
    """The socket of one session of the driver's."""

    driver: Any
    number: int | None  # None: the driver does not tell
    inode: int | None
    is_ours: bool  # a statement of ours began the session


@sensitive_variables()
def private_connection(alias: str, *, has_lock_limit: bool = True) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one thread, with short timeouts if its database is supported.

    Args:
        is_hasty: waits for a locked row only for a moment; else as long as the project's settings say.
    """
    connection = connections.create_connection(alias)
    _opened.append(connection)
    if not supports(connection):  # holds no leases; a receiver of a signal may use it
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

    # Django has no per-connection hook; the connection_created signal would reach every connection.
    setattr(connection, "init_connection_state", initialise_and_limit)  # noqa: B010
    return connection


def limit_lock_waits(connection: BaseDatabaseWrapper) -> None:
    """Have this session wait for a locked row only for a moment."""
    statement = of(connection).lock_wait
    if statement:
        execute(connection, statement, {"seconds": LOCK_WAIT})


def execute(connection: BaseDatabaseWrapper, sql: str, params: Any = None) -> None:
    """Execute a statement that has no answer."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def close_quietly(connection: BaseDatabaseWrapper) -> None:
    """End the session of ``connection``, whatever state it is in."""
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()


def discard(connection: BaseDatabaseWrapper) -> None:
    """End the session of a private connection that nobody will use again."""
    close_quietly(connection)
    with contextlib.suppress(ValueError):  # in a child that was forked meanwhile
        _opened.remove(connection)


def remember_socket(connection: BaseDatabaseWrapper) -> None:
    """Remember which socket leads to the server, for ``shutdown_socket``: MySQL's driver does not tell another thread."""
    if connection.connection is not None and _socket_of(connection) is None:
        _remember(connection, connection.connection, is_ours=False)


def is_socket_known(connection: Any) -> bool:
    """Whether the next statement goes to a session that is there already, and whose socket is known."""
    known = connection.__dict__.get(SOCKET)  # not by ``_socket_of``: every statement asks this
    if known is None or known.driver is not connection.connection:
        return False
    return bool(connection.health_check_done or not connection.health_check_enabled)


def may_connect(connection: Any) -> bool:
    """Whether the next statement may begin a session: there is none, or Django will see first whether it is alive."""
    is_unsure = connection.health_check_enabled and not connection.health_check_done
    return connection.connection is None or is_unsure


def shutdown_socket(connection: BaseDatabaseWrapper) -> None:
    """Close the socket under a thread that waits for an answer: its statement fails as with a lost connection."""
    known = _socket_of(connection)  # a session that went back into a pool may be another thread's by now
    if known is None or known.number is None:
        return
    # It may be closed already.
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(known.number)) as end:
        # Should the session have ended meanwhile, the number may by now be that of another one.
        if os.fstat(end.fileno()).st_ino == known.inode:
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def limit_connect_time(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Have a session that is begun in this block wait for the server so long at most, and its socket be known.

    For that the connection object gets a ``get_new_connection`` of its own until the end of the block. Anything later
    (the signal ``connection_created``, an ``execute_wrapper``) comes after Django's first statements of a session, and
    the server may be frozen by then; and mysqlclient refuses to tell another thread its socket.
    """
    begin = connection.get_new_connection
    if getattr(begin, "func", None) is _begin:  # inside of another such block
        yield
        return
    # Not in a local variable: error reports show these, and it has the password.
    connection.__dict__[SETTINGS] = connection.settings_dict
    _limit_connecting(connection, seconds)
    of_others = connection.__dict__.get(BEGIN)  # what measures sessions may have put it there
    connection.__dict__[BEGIN] = partial(_begin, connection, begin)
    try:
        yield
    finally:
        connection.settings_dict = connection.__dict__.pop(SETTINGS)
        del connection.__dict__[BEGIN]
        if of_others is not None:
            connection.__dict__[BEGIN] = of_others


@sensitive_variables()
def _limit_connecting(connection: BaseDatabaseWrapper, seconds: float) -> None:
    before = connection.settings_dict
    options = before["OPTIONS"]
    if supports(connection) and CONNECT in of(connection).timeouts and not options.get("pool"):
        limit = math.ceil(min(seconds, float(options.get(CONNECT) or seconds)))
        connection.settings_dict = {**before, "OPTIONS": {**options, CONNECT: limit}}


def close_own_session(connection: BaseDatabaseWrapper) -> None:
    """End the session if a statement of ours began it (``limit_connect_time``), and no transaction is open in it."""
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
    with contextlib.suppress(Exception):  # a driver that does not tell
        number = driver.fileno()
        inode = os.fstat(number).st_ino
    vars(connection)[SOCKET] = _Socket(driver, number, inode, is_ours)


def _socket_of(connection: BaseDatabaseWrapper) -> _Socket | None:
    known: _Socket | None = vars(connection).get(SOCKET)
    return known if known is not None and known.driver is connection.connection else None


def _is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    return connection.in_atomic_block or not connection.autocommit


def close_files() -> None:
    """Just before a fork: close the SQLite files that this thread has open and is in no transaction on.

    A child inherits what the library remembers of its locks on a file, but not the locks. The parent, seeing itself
    alone, would remove the log when it closes, and with it what the child has committed (howtocorrupt.html, 2.6).
    """
    for connection in _of_this_thread():
        is_idle = not _is_in_transaction(connection)
        if connection.vendor == "sqlite" and is_idle and not _lives_in_memory(connection):
            close_quietly(connection)


def drop_inherited_connections() -> None:
    """In a forked child: let go of the parent's connections without a word to the server.

    Parent and child share the socket. Used by both it mixes up replies; closed by the child it logs the
    parent out. So the child's end is pointed at /dev/null and the next query connects anew.
    """
    ours = [connection for connection in _of_this_thread() if not connection.in_atomic_block]
    for connection in [*ours, *_opened]:
        driver, known = connection.connection, _socket_of(connection)
        if driver is None or _lives_in_memory(connection):
            continue
        _abandoned.append(driver)
        connection.connection = None
        # A driver whose thread was in the middle of a statement refuses to tell; private ones were asked before.
        with contextlib.suppress(Exception):
            redirect_to_devnull((known and known.number) or driver.fileno())
    _opened.clear()
    # A pool of psycopg's: its idle sessions are the parent's, and the threads that serve it are not in the child.
    postgresql = sys.modules.get("django.db.backends.postgresql.base")
    pools: dict[str, Any] = getattr(getattr(postgresql, "DatabaseWrapper", None), "_connection_pools", {})
    _abandoned.extend(pools.values())
    pools.clear()


def redirect_to_devnull(descriptor: int) -> None:
    """In a forked child: make this socket of the parent's lead to /dev/null, so that closing it ends no session."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _of_this_thread() -> list[BaseDatabaseWrapper]:
    # A proxy stands for a connection that has not been made yet.
    return [one for one in connections.all(initialized_only=True) if not isinstance(one, ConnectionProxy)]


def _lives_in_memory(connection: BaseDatabaseWrapper) -> bool:
    return bool(getattr(connection, "is_in_memory_db", lambda: False)())
