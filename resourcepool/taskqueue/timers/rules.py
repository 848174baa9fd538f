"""Rules of topics: which nodes may handle one (labels, canary, version), and the rates of retries. Pure functions."""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

CANARY = "canary"  # the label


class Rule(NamedTuple):
    """The settings of a topic; see the fields of ``Topic``. Times in seconds."""

    name: str
    is_paused: bool
    requires: Mapping[str, str]
    on_canary: bool
    least_version: str
    ttl: float
    retries: int
    retry_delay: float
    max_crashes: int
    done_kept: float


def may_handle(rule: Rule, labels: Mapping[str, str], version: str) -> bool:
    """Whether a node with these labels and this version may handle the topic, if it has a handler."""
    if CANARY in labels and not rule.on_canary:
        return False
    if any(labels.get(key) != value for key, value in rule.requires.items()):
        return False
    return not rule.least_version or (bool(version) and version_key(version) >= version_key(rule.least_version))


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key of a version: 2.9 < 2.10rc1 < 2.10 = v2.10 = 2.10.0 < 2.10.1."""
    parts = [
        (1, int(part), "") if part.isdigit() else (-1, 0, part)
        for part in re.findall(r"[0-9]+|[a-z]+", re.sub(r"^\s*v(?=[0-9])", "", version.lower()))
    ]
    while parts and parts[-1] == (1, 0, ""):
        parts.pop()
    return (*parts, (0, 0, ""))


class TokenBucket:
    """A rate limit: ``per_second`` on average, and as many at once after a pause. The caller passes the time."""

    def __init__(self, per_second: float) -> None:
        self._rate, self._left, self._at = per_second, per_second, -math.inf

    def left(self, now: float) -> int:
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        return int(self._left)

    def take(self, count: int) -> None:
        self._left -= count


def retry_delay(first: float, failures: int, most: float = 3_600.0) -> float:
    """Return the seconds before the next try: doubled with every failure, an hour at most."""
    return min(max(most, first), first * 2.0 ** min(failures - 1, 60))
