"""Sends a statement through mysqlclient directly, and reads its whole answer.

The cursors of Django and of the driver cost half as much as the statement itself. They are bypassed only if their
classes are Django's and the driver's own, and no tool wraps or logs them.
"""

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.backends import utils

PLAIN = [
    "django.db.backends.utils.CursorWrapper",
    "django.db.backends.mysql.base.CursorWrapper",
    "MySQLdb.cursors.Cursor",
    "MySQLdb.connections.Connection",
]
INTEGRITY_ERRORS = {1048, 1690, 3819, 4025}  # for Django, but not for the driver


class Reply(NamedTuple):
    """A complete answer, with the part of a cursor's interface that readers use."""

    rowcount: int
    lastrowid: int
    rows: Sequence[Any] = ()

    @classmethod
    def of_cursor(cls, cursor: Any) -> "Reply":
        """Return the answer just read by mysqlclient's cursor."""
        has_rows = cursor.description is not None
        return cls(cursor.rowcount, cursor.lastrowid, cursor.fetchall() if has_rows else ())

    def fetchall(self) -> Sequence[Any]:
        """Return all rows."""
        return self.rows


def is_plain(cursor: Any) -> bool:
    """Whether a MySQL cursor consists of Django's and mysqlclient's own classes, without wrappers."""
    execute = utils.CursorWrapper.execute  # tracing tools replace it
    if type(execute) is not FunctionType or execute.__code__.co_filename != utils.__file__:
        return False
    classes = []
    for name in ("cursor", "cursor", "connection", ""):
        classes.append(f"{type(cursor).__module__}.{type(cursor).__qualname__}")
        cursor = getattr(cursor, name, None)
    return classes == PLAIN


def send(connection: Any, text: str, params: Sequence[Any]) -> Reply:
    """Send ``text`` with its %s replaced by ``params``, on a connection with plain cursors (``is_plain``)."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    session = connection.connection
    _discard_unread(session)  # usually nothing
    values = [b"%d" % value if type(value) is int else _literal(session, value) for value in params]
    try:
        session.query(text.encode() % tuple(values))
        result = session.store_result()
        return Reply(session.affected_rows(), session.insert_id(), result.fetch_row(0) if result else ())
    except connection.Database.Error as error:
        if error.args and error.args[0] in INTEGRITY_ERRORS:
            raise IntegrityError(*error.args) from error
        with connection.wrap_database_errors:
            raise
    except BaseException:  # a signal handler's
        _discard_unread(session)
        raise


def _literal(session: Any, value: Any) -> Any:
    # The driver's own ``literal`` tries this type last.
    return (
        session.string_literal(value.encode(session.encoding)) if type(value) is str else session.literal(value)
    )


def _discard_unread(session: Any) -> None:
    """Discard the reply to an interrupted statement, and further results of a procedure."""
    try:
        session.discard_result()
    except session.Error:  # of the previous statement
        pass
    try:
        while session.next_result() == 0:
            session.discard_result()
    except session.Error:
        pass
