"""Renewals that fail or hang, and checks that they were granted."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from resourcepool.leases import verbs


def renewed(leases: list[Any], now: Callable[[], float]) -> Callable[[], bool]:
    return lambda: all(lease._trust.due_at > now() for lease in leases)


class Outage:
    """Stands in front of the keeper's renewals: lets them through, fails them, or holds them up."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.only: Any = None
        self._through = threading.Event()
        self._through.set()
        self._renew = verbs.renew_unless_locked

    def __call__(self, connection: Any, model: Any, *args: Any) -> Any:
        self.calls += 1
        concerns = self.only in (None, model, connection.alias)
        if concerns:
            self._through.wait(20)
        if self.error is not None and concerns:
            raise self.error
        return self._renew(connection, model, *args)

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        self._through.clear()
        try:
            yield
        finally:
            self._through.set()
