"""Hints over Redis pub/sub: one channel per process."""

import contextlib
from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from resourcepool.hints.choice import TIMEOUT, Transport

PREFIX = "resourcepool."


class Redis(Transport):
    """redis-py without its own retries: sender and listener decide when to try again."""

    def __init__(self, url: str) -> None:
        limits: dict[str, Any] = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
        self._client = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **limits)
        self._subscription: Any = self._client.pubsub()  # type: ignore[no-untyped-call]

    def send(self, addresses: Sequence[str]) -> None:
        batch = self._client.pipeline(transaction=False)
        for address in addresses:
            batch.publish(PREFIX + address, "")
        batch.execute()

    def subscribe(self, address: str) -> None:
        self._subscription.subscribe(PREFIX + address)
        if self._subscription.get_message(timeout=TIMEOUT) is None:  # the confirmation
            raise redis.TimeoutError("subscribe was not answered")

    def receive(self, timeout: float) -> bool:
        return self._subscription.get_message(timeout=timeout) is not None

    def echo(self) -> None:
        self._subscription.ping()

    def close(self) -> None:
        with contextlib.suppress(redis.RedisError, OSError):
            self._subscription.close()
        with contextlib.suppress(redis.RedisError, OSError):
            self._client.close()
