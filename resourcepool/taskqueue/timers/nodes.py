"""Nodes, the processes that handle timers: which topics each may handle, and hints about timers due soon."""

import random
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, transaction

from resourcepool import hints, options
from resourcepool.clock import monotonic
from resourcepool.conf import setting
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import default_holder
from resourcepool.options import labels_of
from resourcepool.taskqueue.timers.models import TimerNode, check_version

TTL = 15.0  # seconds
REMOVED_AFTER = 3_600.0  # seconds after its expiry
MAX_NOTIFIED = 2  # nodes per timer
CACHED_FOR = 1.0  # seconds
MAX_VERSION = 50


class Node:
    """The row of this process, renewed within each third of its ttl."""

    def __init__(self, using: str, labels: Mapping[str, str], version: str) -> None:
        self._using, self.labels, self.version = using, dict(labels), version
        self.name, self._topics, self._renewed_at = default_holder(), list[str](), 0.0

    def renew(self, topics: Collection[str]) -> None:
        """Renew the row if that is due or the topics have changed. Raises DatabaseUnavailable."""
        now, topic_names = monotonic(), sorted(topics)
        if self._renewed_at and now - self._renewed_at < TTL / 3 and topic_names == self._topics:
            return
        retrying(connections[self._using], partial(self._write, topic_names))
        self._topics, self._renewed_at = topic_names, now

    def leave(self) -> None:
        """Remove the row. Raises DatabaseUnavailable; then the row expires."""
        retrying(connections[self._using], self._rows().filter(pk=self.name).delete)

    def _write(self, topics: list[str]) -> None:
        columns = {
            "busy_before": DbLater(TTL),
            "holder": self.name,
            "topics": topics,
            "address": hints.address(),
        }
        if self._rows().filter(pk=self.name).update(**columns):
            return
        with transaction.atomic(using=self._using):
            self._rows().filter(busy_before__lt=DbLater(-REMOVED_AFTER)).delete()
            self._rows().create(pk=self.name, labels=self.labels, version=self.version, **columns)

    def _rows(self) -> Any:
        return TimerNode.objects.using(self._using)


_seen: dict[str, tuple[float, list[tuple[int, list[str]]]]] = {}


def notify_after_commit(using: str, topic: str) -> None:
    """Send hints to some nodes that handle this topic, once the caller's transaction commits."""
    if hints.is_enabled():
        hints.after_commit(using, _notify, using, topic)


def _notify(using: str, topic: str) -> None:
    read_at, nodes = _seen.get(using, (-CACHED_FOR, []))
    if monotonic() - read_at >= CACHED_FOR:
        alive = TimerNode.objects.using(using).filter(busy_before__gt=DbNow(), address__gt=0)
        nodes = list(alive.values_list("address", "topics"))
        _seen[using] = monotonic(), nodes
    able = [address for address, topics in nodes if topic in topics]
    for address in random.sample(able, min(MAX_NOTIFIED, len(able))):
        hints.send(address)


def node_labels() -> dict[str, str]:
    try:
        return labels_of(setting("NODE_LABELS"))
    except BadOption as error:
        raise error.of("RESOURCEPOOL['NODE_LABELS']") from None


def node_version() -> str:
    return version_of("RESOURCEPOOL['NODE_VERSION']", setting("NODE_VERSION"))


def version_of(option: str, value: object) -> str:
    version = "" if value == "" else options.text(option, value, most=MAX_VERSION)
    try:
        if version:
            check_version(version)
    except ValidationError as error:
        raise BadOption(option, value, because=" ".join(error.messages)) from None
    return version
