"""The services that carry hints, each with its own server."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection

from tests.aliases import alias, at
from tests.servers import PostgreSQL, Server, ServerMissing
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis

ALIAS = "hinted"


@dataclass
class Service:
    """The value of RESOURCEPOOL["HINTS"], here and in child processes, and the server behind it, if any."""

    hints: str
    hints_of_children: str
    environment: dict[str, str]
    server: Server | None


@contextlib.contextmanager
def served(kind: Callable[[], Any], url: Callable[[Any], str] = lambda server: server.url) -> Iterator[Service]:
    with kind() as server:
        yield Service(url(server), url(server), {}, server)


@contextlib.contextmanager
def postgresql() -> Iterator[Service]:
    with PostgreSQL() as server:
        usual = dict.fromkeys(connection.settings_dict["OPTIONS"])
        place = {**at(server.url), "ENGINE": "django.db.backends.postgresql"}
        with alias(ALIAS, leased=False, OPTIONS=usual, **place):
            yield Service(f"postgresql:{ALIAS}", "postgresql", {"DATABASE_URL": server.url}, server)


KINDS: dict[str, Callable[[], contextlib.AbstractContextManager[Service]]] = {
    "redis": lambda: served(Redis),
    "postgresql": postgresql,
    "rabbitmq": lambda: served(RabbitMQ),
    "redis_by_kombu": lambda: served(Redis, lambda server: f"redis+socket://{server.folder}/socket"),
    "memory": lambda: contextlib.nullcontext(Service("memory://", "memory://", {}, None)),
}


@contextlib.contextmanager
def started(kind: str) -> Iterator[Service]:
    """Start this service; skips the test if it is not installed."""
    with contextlib.ExitStack() as stack:
        try:
            service = stack.enter_context(KINDS[kind]())
        except ServerMissing as missing:
            pytest.skip(str(missing))
        yield service
