"""The rows of the processes that handle timers: who could handle a topic, and where it is told of what is due soon."""

import random
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from django.db import connections, transaction

from resourcepool import hints
from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater, DbNow
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.timers.models import TimerNode

TTL = 15.0  # seconds
LONG_GONE = 3_600.0  # seconds
MAX_NOTIFIED = 2  # nodes, of one timer
KNOWN_FOR = 1.0  # seconds for which the nodes that were read are told


class Node:
    """This process's own row; renewed within each third of its ttl."""

    def __init__(self, using: str, labels: Mapping[str, str], version: str) -> None:
        self._using, self.labels, self.version = using, dict(labels), version
        self.name, self._topics, self._renewed_at = default_holder(), list[str](), 0.0

    def renew(self, topics: Collection[str]) -> None:
        """Say, when it is time or they have changed, that it lives and handles these. Raises DatabaseUnavailable."""
        now, wanted = monotonic(), sorted(topics)
        if self._renewed_at and now - self._renewed_at < TTL / 3 and wanted == self._topics:
            return
        retrying(connections[self._using], partial(self._write, wanted))
        self._topics, self._renewed_at = wanted, now

    def leave(self) -> None:
        """Remove the row. Raises DatabaseUnavailable: it expires."""
        retrying(connections[self._using], self._rows().filter(pk=self.name).delete)

    def _write(self, topics: list[str]) -> None:
        told = {"busy_before": DbLater(TTL), "holder": self.name, "topics": topics, "address": hints.address()}
        if self._rows().filter(pk=self.name).update(**told):
            return
        with transaction.atomic(using=self._using):
            self._rows().filter(busy_before__lt=DbLater(-LONG_GONE)).delete()
            self._rows().create(pk=self.name, labels=self.labels, version=self.version, **told)

    def _rows(self) -> Any:
        return TimerNode.objects.using(self._using)


_seen: dict[str, tuple[float, list[tuple[int, list[str]]]]] = {}


def notify_after_commit(using: str, topic: str) -> None:
    """Have some nodes that handle this topic look, once what the caller has written counts."""
    if hints.is_enabled():
        hints.after_commit(using, _tell, using, topic)


def _tell(using: str, topic: str) -> None:
    read_at, nodes = _seen.get(using, (-KNOWN_FOR, []))
    if monotonic() - read_at >= KNOWN_FOR:
        alive = TimerNode.objects.using(using).filter(busy_before__gt=DbNow(), address__gt=0)
        nodes = list(alive.values_list("address", "topics"))
        _seen[using] = monotonic(), nodes
    able = [address for address, topics in nodes if topic in topics]
    for address in random.sample(able, min(MAX_NOTIFIED, len(able))):
        hints.send(address)
