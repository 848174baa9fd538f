"""Ends a session from another thread than the one that waits for an answer in it."""

import contextlib
import math
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.private import close_quietly
from resourcepool.dialect.supported import of, supports

CONNECT = "connect_timeout"
BEGIN = "get_new_connection"
SOCKET = "_resourcepool_socket"  # Django's connection objects have no such attribute


def know_socket(connection: BaseDatabaseWrapper) -> None:
    """Remember which socket leads to the server, for ``hang_up``: MySQL's driver does not tell another thread."""
    driver = connection.connection
    if driver is not None and getattr(connection, SOCKET, (None,))[0] is not driver:
        _remember(connection, driver, is_ours=False)


def is_socket_known(connection: Any) -> bool:
    """Whether the next statement goes to a session that is there already, and whose socket is known."""
    known, driver = connection.__dict__.get(SOCKET), connection.connection
    if known is None or driver is None or known[0] is not driver:
        return False
    return bool(connection.health_check_done or not connection.health_check_enabled)


def hang_up(connection: BaseDatabaseWrapper) -> None:
    """Close the socket under whoever waits for an answer: the statement fails there as with a lost connection."""
    driver, number, inode, _ = getattr(connection, SOCKET, (None, None, None, False))
    with contextlib.suppress(OSError):  # it is closed already
        # A session that went back into a pool may be somebody else's by now.
        if number is not None and driver is connection.connection:
            with socket.socket(fileno=os.dup(number)) as end:
                # Should the session have ended meanwhile, the number may by now be that of somebody else's.
                if os.fstat(end.fileno()).st_ino == inode:
                    end.shutdown(socket.SHUT_RDWR)


def may_connect(connection: Any) -> bool:
    """Whether the next statement may begin a session: there is none, or Django will see first whether it is alive."""
    return connection.connection is None or (
        connection.health_check_enabled and not connection.health_check_done
    )


@contextlib.contextmanager
def connecting_within(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Have a session that is begun in this block wait for the server so long at most, and its socket be known.

    For that the connection object gets a ``get_new_connection`` of its own until the end of the block, because Django
    sends the first statements of a session right after it, and the server may be frozen by then. Tried in its place:

    - the signal ``connection_created``: sent after these statements;
    - ``execute_wrapper``: not called for ``SET autocommit``, nor for cursors of the driver's own;
    - ``ensure_connection`` before the block: the same statements, of a session whose socket is not known yet;
    - asking the driver for its socket when it is time to hang up: mysqlclient refuses to answer another thread.
    """
    begin, before = connection.get_new_connection, connection.settings_dict
    if getattr(begin, "func", None) is _begin:  # inside of another such block
        yield
        return
    options = before["OPTIONS"]
    if supports(connection) and CONNECT in of(connection).timeouts and not options.get("pool"):
        limit = math.ceil(min(seconds, float(options.get(CONNECT) or seconds)))
        connection.settings_dict = {**before, "OPTIONS": {**options, CONNECT: limit}}
    of_others = connection.__dict__.get(BEGIN)  # what measures sessions may have put it there
    connection.__dict__[BEGIN] = partial(_begin, connection, begin)
    try:
        yield
    finally:
        connection.settings_dict = before
        del connection.__dict__[BEGIN]
        if of_others is not None:
            connection.__dict__[BEGIN] = of_others


def close_ours(connection: BaseDatabaseWrapper) -> None:
    """End the session if a statement of ours began it (``connecting_within``), and no transaction is open in it."""
    driver, _, _, is_ours = getattr(connection, SOCKET, (None, None, None, False))
    is_in_transaction = connection.in_atomic_block or not connection.autocommit
    if is_ours and driver is connection.connection and not is_in_transaction:
        close_quietly(connection)


def _begin(connection: BaseDatabaseWrapper, begin: Callable[[Any], Any], conn_params: Any) -> Any:
    driver = begin(conn_params)
    _remember(connection, driver, is_ours=True)
    return driver


def _remember(connection: BaseDatabaseWrapper, driver: Any, *, is_ours: bool) -> None:
    number = inode = None
    with contextlib.suppress(Exception):  # a driver that does not tell
        number = driver.fileno()
        inode = os.fstat(number).st_ino
    setattr(connection, SOCKET, (driver, number, inode, is_ours))
