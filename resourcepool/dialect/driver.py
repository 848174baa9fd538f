"""Sends a statement through mysqlclient's session itself, and reads its whole answer.

The cursors of Django and of the driver take half as long again as the statement. They are left out only where nobody
can tell: the classes are Django's and the driver's own, and no tool that measures or logs has put anything in between.
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
VIOLATED = {1048, 1690, 3819, 4025}  # integrity errors in Django's eyes, which the driver takes for others


class Reply(NamedTuple):
    """A server's answer, read in full: as much of a driver's cursor as is read of one."""

    rowcount: int
    lastrowid: int
    rows: Sequence[Any] = ()

    @classmethod
    def of_cursor(cls, cursor: Any) -> "Reply":
        """Return the answer that mysqlclient's cursor has just read."""
        has_rows = cursor.description is not None
        return cls(cursor.rowcount, cursor.lastrowid, cursor.fetchall() if has_rows else ())

    def fetchall(self) -> Sequence[Any]:
        """Return all rows."""
        return self.rows


def is_plain(cursor: Any) -> bool:
    """Whether a cursor of a connection to MySQL is Django's and mysqlclient's own, with nothing around it."""
    execute = utils.CursorWrapper.execute  # replaced by those who trace statements
    if type(execute) is not FunctionType or execute.__code__.co_filename != utils.__file__:
        return False
    classes = []
    for name in ("cursor", "cursor", "connection", ""):
        classes.append(f"{type(cursor).__module__}.{type(cursor).__qualname__}")
        cursor = getattr(cursor, name, None)
    return classes == PLAIN


def send(connection: Any, text: str, params: Sequence[Any]) -> Reply:
    """Send ``text``, its %s replaced by ``params``, on a connection whose cursors are plain; see ``is_plain``."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    session = connection.connection
    values = [b"%d" % value if type(value) is int else session.literal(value) for value in params]
    _discard_unread(session)  # usually there is nothing
    try:
        session.query(text.encode() % tuple(values))
        result = session.store_result()
        return Reply(session.affected_rows(), session.insert_id(), result.fetch_row(0) if result else ())
    except connection.Database.Error as error:
        if error.args and error.args[0] in VIOLATED:
            raise IntegrityError(*error.args) from error
        with connection.wrap_database_errors:
            raise
    except BaseException:  # a signal handler's
        _discard_unread(session)
        raise


def _discard_unread(session: Any) -> None:
    """Do away with the reply to a statement that a signal has interrupted, and with more results of a procedure."""
    try:
        session.discard_result()
    except session.Error:  # that of the statement before
        pass
    try:
        while session.next_result() == 0:
            session.discard_result()
    except session.Error:
        pass
