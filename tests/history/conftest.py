"""All tests here have a history, and flush it at the end."""

from tests.committed import other, statements, transactional_db
from tests.history.fixtures import history
from tests.history.recorded import proxy, quick

__all__ = ["history", "other", "proxy", "quick", "statements", "transactional_db"]
