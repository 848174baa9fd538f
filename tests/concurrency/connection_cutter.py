"""A relay to the database server that can cut the connection just after the server has executed a statement."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connection as default, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.eventually import closing
from tests.relay import Relay, Trick


class Wire:
    """A relay to the database server, in a thread of this process."""

    def __init__(self, host: str, port: int, own_port: int = 0) -> None:
        self._relay = Relay(host, port, own_port)
        self.port = self._relay.port
        self.asked, self.cuts = 0, 0
        threading.Thread(target=self._relay.serve, daemon=True).start()

    def cut_after(self, words: str, *, meanwhile: Callable[[], object] | None = None) -> None:
        """Lose the reply to the next statement that contains these words (and only to that one).

        Args:
            meanwhile: called before the loss is noticed, with a separate database connection.
        """

        def count() -> None:
            self.cuts += 1
            if meanwhile is not None:
                closing(meanwhile)

        self.asked += 1
        self._relay.expect(Trick(words, then=count))

    def close(self) -> None:
        self._relay.close()


@contextlib.contextmanager
def wired() -> Iterator[tuple[Wire, BaseDatabaseWrapper]]:
    """Connect this thread to the database through a relay; yields the relay and the connection."""
    settings = default.settings_dict
    wire = Wire(settings["HOST"], int(settings["PORT"]))
    own: Any = connections.create_connection("default")
    own.settings_dict = {**settings, "HOST": "127.0.0.1", "PORT": wire.port}
    before = connections["default"]
    connections["default"] = own
    try:
        yield wire, own
    finally:
        own.close()
        connections["default"] = before
        wire.close()


class Interference:
    """Raises an error instead of or after statements, a given number of times; see ``execute_wrapper``."""

    def __init__(self) -> None:
        self.raised = 0
        self._words = ""
        self._error: Callable[[], Exception] | None = None
        self._left = 0
        self._after = False

    def expect(
        self, words: str, error: Callable[[], Exception], *, times: int = 1, after: bool = False
    ) -> None:
        """Fail the next ``times`` statements that contain ``words``; with ``after``, once they have taken effect."""
        self._words, self._error, self._left, self._after = words, error, times, after

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._error is None or not self._left or self._words not in sql:
            return execute(sql, params, many, context)
        self._left -= 1
        self.raised += 1
        if self._after:
            execute(sql, params, many, context)
        raise self._error()
