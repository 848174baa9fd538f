"""Rules of topics: which nodes may handle one (labels, canary, version), and how fast. Pure functions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from packaging.version import InvalidVersion, Version

from resourcepool.taskqueue.abstract import Settings
from resourcepool.translation import gettext as _

CANARY = "canary"  # the label


@dataclass(frozen=True, slots=True)
class Rule(Settings):
    """The settings of a topic."""

    name: str
    requires: Mapping[str, str]
    on_canary: bool
    least_version: str
    ttl: float

    def delay(self, failures: int) -> float:
        """Return the time before the next attempt: doubled with every failure, an hour at most."""
        return min(max(3_600.0, self.retry_delay), self.retry_delay * 2.0 ** min(failures - 1, 60))


def may_handle(rule: Rule, labels: Mapping[str, str], version: str) -> bool:
    """Whether a node with these labels and this version may handle the topic, if it has a handler."""
    if CANARY in labels and not rule.on_canary:
        return False
    if any(labels.get(key) != value for key, value in rule.requires.items()):
        return False
    return is_enough(version, rule.least_version)


def is_enough(version: str, least: str) -> bool:
    """Whether a version is ``least`` or later: 2.9 < 2.10rc1 < 2.10 = v2.10 = 2.10.0 < 2.10.1 (PEP 440).

    Every version is later than ``""``; one that cannot be read is not later than any other.
    """
    try:
        return not least or Version(version) >= Version(least)
    except InvalidVersion:
        return False


def check_version(version: str) -> None:
    """Validate a version, for model fields; raises ValidationError."""
    try:
        Version(version)
    except InvalidVersion:
        raise ValidationError(_("A version must be like 2.10 or 2.10rc1 (PEP 440).")) from None


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
