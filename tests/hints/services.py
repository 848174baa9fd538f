"""The services that carry hints, each with its own server."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
def redis() -> Iterator[Service]:
    with Redis() as server:
        yield Service(server.url, server.url, {}, server)


@contextlib.contextmanager
def postgresql() -> Iterator[Service]:
    with PostgreSQL() as server:
        usual = dict.fromkeys(connection.settings_dict["OPTIONS"])
        place = {**at(server.url), "ENGINE": "django.db.backends.postgresql"}
        with alias(ALIAS, leased=False, OPTIONS=usual, **place):
            yield Service(f"postgresql:{ALIAS}", "postgresql", {"DATABASE_URL": server.url}, server)


@contextlib.contextmanager
def rabbitmq() -> Iterator[Service]:
    with RabbitMQ() as server:
        yield Service(server.url, server.url, {}, server)


@contextlib.contextmanager
def redis_by_kombu() -> Iterator[Service]:
    with Redis() as server:
        url = f"redis+socket://{server.folder}/socket"
        yield Service(url, url, {}, server)


@contextlib.contextmanager
def memory() -> Iterator[Service]:
    yield Service("memory://", "memory://", {}, None)


KINDS: dict[str, Callable[[], contextlib.AbstractContextManager[Service]]] = {
    "redis": redis,
    "postgresql": postgresql,
    "rabbitmq": rabbitmq,
    "redis_by_kombu": redis_by_kombu,
    "memory": memory,
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
