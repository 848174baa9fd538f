"""The databases that this package runs on."""

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

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


def violates(connection: BaseDatabaseWrapper, error: Exception, constraint: str) -> bool:
    """Whether an INSERT failed because of this unique constraint."""
    return of(connection).violates(error, constraint)
