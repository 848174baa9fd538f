"""Durations for people."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

UNITS = ((gettext_noop("%d d"), 86_400), (gettext_noop("%d h"), 3_600), (gettext_noop("%d min"), 60))


def duration(seconds: float) -> str:
    """Return a duration for people, rounded: "45 s", "12 min", "3 h", "5 d"."""
    for unit, size in UNITS:
        if round(seconds) >= 2 * size:
            return _(unit) % round(seconds / size)
    return _("%d s") % seconds


def exactly(seconds: float) -> str:
    """Return a duration that somebody has set, in the largest unit that needs no rounding: "7 d", "90 min", "2.5 s"."""
    for unit, size in UNITS:
        if seconds and seconds % size == 0:
            return _(unit) % (seconds // size)
    return _("%s s") % f"{seconds:,.15g}"


def ago(micros: float | None) -> float | None:
    """Return how many seconds ago a time was, given the microseconds until it (``MicrosUntil``); None: never."""
    return None if micros is None else max(0.0, -float(micros) / 1_000_000)
