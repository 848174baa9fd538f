"""The database sessions of a handler: alive when it begins, without an open transaction when it has ended."""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind

MAX_CAUSES = 20  # in a chain of exceptions


def refresh() -> None:
    """Close the sessions of this thread that Django would close between two requests (``CONN_MAX_AGE``).

    The others are checked, so that a session lost between two handlers does not fail the second one.
    """
    with contextlib.suppress(DatabaseError, InterfaceError):  # the driver may have closed one already
        close_old_connections()
    require_health_check()


def require_health_check() -> None:
    """Check the sessions of this thread before their next statement, also without ``CONN_HEALTH_CHECKS``."""
    connection: Any
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            connection.health_check_enabled, connection.health_check_done = True, False


def close_open_transactions() -> list[str]:
    """Close the sessions of this thread that are in a transaction; return the names of their databases."""
    unfinished = [each for each in connections.all(initialized_only=True) if _has_transaction(each)]
    for connection in unfinished:
        dialect.close_quietly(connection)
        del connections[connection.alias]  # with Django's record of open atomic blocks
    return [connection.alias for connection in unfinished]


def close_all() -> None:
    """Close all sessions of this thread."""
    for connection in connections.all(initialized_only=True):
        dialect.close_quietly(connection)


def caused_by_disconnection(error: BaseException) -> bool:
    """Whether a lost connection to a database that this thread has used caused this error."""
    return any(_is_disconnection(cause) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_disconnection(error: BaseException) -> bool:
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    supported: list[Any] = [each for each in connections.all(initialized_only=True) if dialect.supports(each)]
    candidates = [each for each in supported if isinstance(error.__cause__, each.Database.Error)]
    return any(dialect.error_kind(each, error) is ErrorKind.DISCONNECTED for each in candidates)


def _has_transaction(connection: Any) -> bool:
    is_default = connection.autocommit == connection.settings_dict["AUTOCOMMIT"]
    if connection.in_atomic_block or (connection.connection is not None and not is_default):
        return True
    # ``require_health_check`` resets health_check_done.
    is_used = connection.connection is not None and connection.health_check_done
    if not is_used or not connection.autocommit or not dialect.supports(connection):
        return False
    # A lost session has lost its transaction, too.
    with contextlib.suppress(DatabaseError, InterfaceError), connection.wrap_database_errors:
        return dialect.of(connection).has_transaction(connection)
    return False
