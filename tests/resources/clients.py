"""The clients of ``test_any_order``: a connection each, and lost replies."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.concurrency.connection_cutter import Interference
from tests.concurrency.test_transient import by_postgresql

LOST_CONNECTION: dict[str, Callable[[], OperationalError]] = {
    "mysql": lambda: OperationalError(2013, "Lost connection to server during query"),
    "postgresql": lambda: by_postgresql("08006"),
}
CAN_LOSE = connection.vendor in LOST_CONNECTION  # SQLite has no connection that could be lost


class Clients:
    """Several clients in one thread, one of which is active."""

    def __init__(self, each: Sequence[BaseDatabaseWrapper]) -> None:
        self._each = each
        self._interference = Interference()
        self._stack = contextlib.ExitStack()
        for one in each:
            self._stack.enter_context(one.execute_wrapper(self._interference))

    def close(self) -> None:
        """Stop losing replies."""
        self._stack.close()

    @contextlib.contextmanager
    def playing(self, number: int, *, loses: bool = False) -> Iterator[BaseDatabaseWrapper]:
        """Activate a client for a block; ``loses``: the reply to its next UPDATE gets lost."""
        before, connections["default"] = connections["default"], self._each[number]
        try:
            with self.losing_a_reply(loses):
                yield self._each[number]
        finally:
            connections["default"] = before

    @contextlib.contextmanager
    def losing_a_reply(self, loses: bool) -> Iterator[None]:
        """Lose the reply to the next UPDATE of the block if ``loses``."""
        if loses:
            self._interference.expect("UPDATE", LOST_CONNECTION[connection.vendor], after=True)
        try:
            yield
        finally:
            self._interference.expect("", OperationalError, times=0)
