"""Reads how a database is set up, in words that do not depend on its make; nothing here judges."""

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.inspection.base import Inspector, QueryPlan, Session, TableAccess, TableFacts
from resourcepool.dialect.inspection.mysql import MySQLInspector
from resourcepool.dialect.inspection.postgresql import PostgreSQLInspector
from resourcepool.dialect.inspection.sqlite import SQLiteInspector

__all__ = ["Inspector", "QueryPlan", "Session", "TableAccess", "TableFacts", "inspector"]

_INSPECTORS = {"mysql": MySQLInspector, "postgresql": PostgreSQLInspector, "sqlite": SQLiteInspector}


def inspector(connection: BaseDatabaseWrapper) -> Inspector:
    """Return the inspector of ``connection``, whose database must be a supported one."""
    return _INSPECTORS[connection.vendor](connection)
