"""Durations and times as text for people, the same on every surface."""

import datetime

from django.db import connections, router
from django.utils import timezone

from resourcepool.db.dialect import from_columns, read_clock
from resourcepool.history.models import Event
from resourcepool.translation import gettext as _, gettext_noop

UNITS = ((gettext_noop("%d d"), 86_400), (gettext_noop("%d h"), 3_600), (gettext_noop("%d min"), 60))
HUNDREDTHS, TENTHS = gettext_noop("%.2f s"), gettext_noop("%.1f s")


def duration(seconds: float) -> str:
    """Return a rounded duration as text: "45 s", "12 min", "3 h", "5 d"."""
    for unit, size in UNITS:
        if round(seconds) >= 2 * size:
            return _(unit) % round(seconds / size)
    return _("%d s") % seconds


def precise_duration(seconds: float, text: str = HUNDREDTHS) -> str:
    """Return ``duration``; below 10 s more precisely, with ``text``."""
    return duration(seconds) if seconds >= 10 else _(text) % seconds


def exact_duration(seconds: float) -> str:
    """Return a duration as text in the largest unit that needs no rounding: "7 d", "90 min", "2.5 s"."""
    for unit, size in UNITS:
        if seconds and seconds % size == 0:
            return _(unit) % (seconds // size)
    return _("%s s") % f"{seconds:,.15g}"


def ago(seconds: float | None) -> str:
    """Return "12 min ago", or "never"."""
    return _("never") if seconds is None else _("%s ago") % duration(seconds)


def with_zone(at: datetime.datetime) -> datetime.datetime:
    """Return a datetime that was read from a column, aware even if USE_TZ is off."""
    return at if timezone.is_aware(at) else from_columns(at, connections[router.db_for_write(Event)])


def local_time(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07+08:00", in the project's time zone."""
    return _local(at).isoformat(" ", "seconds")


def timestamp_with_age(at: datetime.datetime | None, passed: float | None) -> str:
    """Return "2026-11-21 03:12:07+08:00 (12 min ago)", in the project's time zone.

    Args:
        passed: seconds since then, by the database's clock.
    """
    if at is None or passed is None:
        return _("unknown")
    return _("%(at)s (%(ago)s ago)") % {"at": local_time(at), "ago": duration(passed)}


def database_now() -> datetime.datetime:
    """Return the time of the database's clock, in the current time zone; one query."""
    return _local(read_clock(connections[router.db_for_write(Event)]))


def format_datetime(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07" in the current time zone, which ``time_zone_note`` names."""
    return f"{_local(at):%Y-%m-%d %H:%M:%S}"


def format_short_datetime(at: datetime.datetime, now: datetime.datetime) -> str:
    """Return a date and time for a narrow column: today's without the date."""
    at, now = _local(at), _local(now)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else format_datetime(at)


def time_zone_note() -> str:
    """Return a sentence that names the time zone of the page."""
    now = timezone.localtime(datetime.datetime.now(datetime.UTC))
    zone = {"name": timezone.get_current_timezone_name(), "offset": now.isoformat()[-6:]}
    return _("Times are shown in %(name)s (%(offset)s).") % zone


def _local(at: datetime.datetime) -> datetime.datetime:
    return timezone.localtime(with_zone(at))
