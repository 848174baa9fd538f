"""Hints by any other broker that Celery runs on, through kombu; written for RabbitMQ."""

import contextlib
import secrets
import socket
from collections.abc import Sequence
from typing import Any

from kombu import Connection, Consumer, Exchange, Producer, Queue

from resourcepool import dialect
from resourcepool.hints.transport import TIMEOUT, Transport

EXCHANGE = Exchange("resourcepool.hints", type="direct", durable=False)
# What one of the transports calls its limits, the others ignore.
LIMITS = dict.fromkeys(("read_timeout", "write_timeout", "socket_timeout", "socket_connect_timeout"), TIMEOUT)
EXPIRES = 60.0  # seconds after which a broker that does not notice their end removes the queues of the dead
CONNECT_TIMEOUT = 4  # seconds for a broker to answer who sends a Celery task


def broker_connection(app: Any) -> Any:
    """Return a connection of a Celery app to its broker, which raises if that does not answer."""
    options = {**dict.fromkeys(LIMITS, CONNECT_TIMEOUT), **app.conf.broker_transport_options}
    return app.connection_for_write(connect_timeout=CONNECT_TIMEOUT, transport_options=options)


class Broker(Transport):
    """A direct exchange, and a queue per process that is gone with its session. Hints are not stored or confirmed."""

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
        # A name of its own for every session: the broker may not know yet that the last one is gone.
        name = f"resourcepool.{address}.{secrets.token_hex(4)}"
        kept: dict[str, Any] = {"durable": False, "exclusive": True, "auto_delete": True, "expires": EXPIRES}
        queue = Queue(name, EXCHANGE, routing_key=address, **kept)
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
        with contextlib.suppress(Exception):  # of any kind: the session is given up
            self._connection.release()

    def abandon(self) -> None:
        # py-amqp says good-bye on the socket that parent and child share, and be it at the interpreter's end.
        if self._descriptor is not None:
            dialect.redirect_to_devnull(self._descriptor)

    def _connect(self) -> None:
        self._connection.connect()
        found = getattr(self._connection.connection, "sock", None)
        self._descriptor = found.fileno() if isinstance(found, socket.socket) else None
        self._producer = Producer(self._connection.channel(), EXCHANGE)

    def _count(self, message: Any) -> None:
        self._received += 1
