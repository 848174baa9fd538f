"""Background threads and their database connections: their own, opened when used, closed when they rest."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from django.db import connections

from resourcepool import dialect

logger = logging.getLogger(__name__)


def start(name: str, work: Callable[[], object]) -> threading.Thread:
    """Run ``work`` once in a daemon thread; what it raises is logged, the connections it used are closed."""

    def run() -> None:
        try:
            work()
        except Exception:
            logger.exception("resourcepool-%s failed", name)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, name=f"resourcepool-{name}", daemon=True)
    thread.start()
    return thread


class OwnConnections:
    """The private connections of the calling thread."""

    def __init__(self) -> None:
        supported = [alias for alias in connections if dialect.supports(connections[alias])]
        self._opened = {alias: dialect.private_connection(alias) for alias in supported}
        for alias, connection in self._opened.items():
            connections[alias] = connection

    @property
    def are_open(self) -> bool:
        """Whether any of them has a session on a server."""
        return any(connection.connection is not None for connection in self._opened.values())

    def close(self) -> None:
        """End the sessions; the next query begins a new one."""
        for connection in self._opened.values():
            dialect.close_quietly(connection)


@contextlib.contextmanager
def own_connections() -> Iterator[OwnConnections]:
    """Give the calling thread connections with short timeouts, and close them at the end."""
    own = OwnConnections()
    try:
        yield own
    finally:
        own.close()
