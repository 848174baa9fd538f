"""Which inspector speaks to which database."""

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.inspection.base import Inspector
from resourcepool.dialect.inspection.mysql import MySQLInspector
from resourcepool.dialect.inspection.postgresql import PostgreSQLInspector
from resourcepool.dialect.inspection.sqlite import SQLiteInspector

_INSPECTORS = {"mysql": MySQLInspector, "postgresql": PostgreSQLInspector, "sqlite": SQLiteInspector}


def inspector(connection: BaseDatabaseWrapper) -> Inspector:
    """Return who asks ``connection``; only for a database that is supported."""
    return _INSPECTORS[connection.vendor](connection)
