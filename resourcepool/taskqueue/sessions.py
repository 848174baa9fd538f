"""The database sessions of a handler: alive when it begins, and with no transaction left open when it has ended."""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from resourcepool import dialect
from resourcepool.dialect import ErrorKind

MOST_CAUSES = 20  # errors of which each one caused the next


def refresh() -> None:
    """End the sessions of this thread that Django would end between two requests (``CONN_MAX_AGE``).

    Those that it keeps are checked: a session that ended between two handlers is no failure of the second one.
    """
    with contextlib.suppress(DatabaseError, InterfaceError):  # the driver may have closed one already
        close_old_connections()
    require_health_check()


def require_health_check() -> None:
    """Have the sessions of this thread checked before their next statement, also without ``CONN_HEALTH_CHECKS``."""
    connection: Any
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            connection.health_check_enabled, connection.health_check_done = True, False


def close_open_transactions() -> list[str]:
    """End the sessions of this thread in which a transaction is open; return the names of their databases."""
    opened = [one for one in connections.all(initialized_only=True) if _has_transaction(one)]
    for connection in opened:
        dialect.close_quietly(connection)
        del connections[connection.alias]  # and what Django thinks is open in it
    return [connection.alias for connection in opened]


def close_all() -> None:
    """End all sessions of this thread."""
    for connection in connections.all(initialized_only=True):
        dialect.close_quietly(connection)


def caused_by_disconnection(error: BaseException) -> bool:
    """Whether this error came of a lost connection to one of the databases that this thread has used."""
    return any(_is_disconnection(cause) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_disconnection(error: BaseException) -> bool:
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    known: list[Any] = [one for one in connections.all(initialized_only=True) if dialect.supports(one)]
    of_driver = [one for one in known if isinstance(error.__cause__, one.Database.Error)]
    return any(dialect.error_kind(one, error) is ErrorKind.DISCONNECTED for one in of_driver)


def _has_transaction(connection: Any) -> bool:
    is_usual = connection.autocommit == connection.settings_dict["AUTOCOMMIT"]
    if connection.in_atomic_block or (connection.connection is not None and not is_usual):
        return True
    is_used = (
        connection.connection is not None and connection.health_check_done
    )  # since ``require_health_check``
    if not is_used or not connection.autocommit or not dialect.supports(connection):
        return False
    # A lost session has taken its transaction along.
    with contextlib.suppress(DatabaseError, InterfaceError), connection.wrap_database_errors:
        return dialect.of(connection).has_transaction(connection)
    return False
