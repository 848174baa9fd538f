"""Reads the configuration of a database in a common form, without judging it."""

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.inspection.base import Inspector, QueryPlan, Session, TableAccess, TableFacts
from resourcepool.db.inspection.mysql import MySQLInspector
from resourcepool.db.inspection.postgresql import PostgreSQLInspector
from resourcepool.db.inspection.sqlite import SQLiteInspector

__all__ = ["Inspector", "QueryPlan", "Session", "TableAccess", "TableFacts", "inspector"]

_INSPECTORS = {"mysql": MySQLInspector, "postgresql": PostgreSQLInspector, "sqlite": SQLiteInspector}


def inspector(connection: BaseDatabaseWrapper) -> Inspector:
    """Return the inspector of ``connection``; its database must be supported."""
    return _INSPECTORS[connection.vendor](connection)
