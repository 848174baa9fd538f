"""Hints over any other Celery broker, through kombu; written for RabbitMQ."""

import contextlib
import secrets
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError

from resourcepool.db import dialect
from resourcepool.hints.choice import TIMEOUT, Transport

EXCHANGE = Exchange("resourcepool.hints", type="direct", durable=False)
# Each kombu transport reads its own option names, and ignores the others.
LIMITS = dict.fromkeys(("read_timeout", "write_timeout", "socket_timeout", "socket_connect_timeout"), TIMEOUT)
EXPIRES = 60.0  # seconds after which the broker removes the queue of a crashed process
CONNECT_TIMEOUT = 4  # seconds, when a Celery task is sent


@contextlib.contextmanager
def broker_connection(app: Any) -> Iterator[Any]:
    """Yield a connection of a Celery app to its broker; using it raises if the broker does not answer."""
    options = {**dict.fromkeys(LIMITS, CONNECT_TIMEOUT), **app.conf.broker_transport_options}
    connection = app.connection_for_write(connect_timeout=CONNECT_TIMEOUT, transport_options=options)
    with connection, broker_named(connection):
        yield connection


@contextlib.contextmanager
def broker_named(connection: Any) -> Iterator[None]:
    """Add the broker's address, without its password, to errors: "[Errno 111] Connection refused" has none."""
    try:
        yield
    except (OperationalError, OSError) as error:
        raise OperationalError(f"broker {connection.as_uri()}: {error}") from error


class Broker(Transport):
    """A direct exchange, and a queue per process that ends with its session. Hints are not stored or confirmed."""

    def __init__(self, url: str) -> None:
        self._connection: Any = Connection(url, connect_timeout=TIMEOUT, transport_options=dict(LIMITS))
        self._producer: Any = None
        self._address = ""
        self._received = 0
        self._descriptor: int | None = None

    def send(self, addresses: Sequence[str]) -> None:
        if self._producer is None:
            self._connect()
        for address in addresses:
            self._producer.publish("", routing_key=address, delivery_mode="transient", retry=False)

    def subscribe(self, address: str) -> None:
        self._connect()
        self._address = address
        # Unique per session: the queue of the previous one may still exist.
        name = f"resourcepool.{address}.{secrets.token_hex(4)}"
        options: dict[str, Any] = {"durable": False, "exclusive": True, "auto_delete": True, "expires": EXPIRES}
        queue = Queue(name, EXCHANGE, routing_key=address, **options)
        consumer = Consumer(self._connection.channel(), [queue], no_ack=True, on_message=self._count)
        consumer.consume()

    def receive(self, timeout: float) -> bool:
        before = self._received
        with contextlib.suppress(TimeoutError):
            self._connection.drain_events(timeout=timeout)
        return self._received > before

    def echo(self) -> None:
        self.send([self._address])

    def close(self) -> None:
        self._producer = self._descriptor = None
        with contextlib.suppress(Exception):  # kombu raises many kinds
            self._connection.release()

    def abandon(self) -> None:
        # py-amqp closes the session on the socket shared with the parent, at the latest when the interpreter exits.
        if self._descriptor is not None:
            dialect.redirect_to_devnull(self._descriptor)

    def _connect(self) -> None:
        self._connection.connect()
        sock = getattr(self._connection.connection, "sock", None)
        self._descriptor = sock.fileno() if isinstance(sock, socket.socket) else None
        self._producer = Producer(self._connection.channel(), EXCHANGE)

    def _count(self, message: Any) -> None:
        self._received += 1
