"""Reads how a database is set up, in words that do not depend on its make; nothing here judges."""

from resourcepool.dialect.inspection.base import Inspector, QueryPlan, TableAccess, TableFacts
from resourcepool.dialect.inspection.choice import inspector

__all__ = ["Inspector", "QueryPlan", "TableAccess", "TableFacts", "inspector"]
