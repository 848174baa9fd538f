"""Format states, links, dates and durations, the same way in every list and on every page."""

import datetime
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.db.models import DateTimeField
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from resourcepool.dashboard.links import admin_url
from resourcepool.database.columns import is_seconds
from resourcepool.events import SentenceField, localized
from resourcepool.status.snapshots import UNITS, duration, exact_duration, with_zone
from resourcepool.translation import gettext as _

UNIT_SUFFIX = re.compile(r" ?[(（](s|秒)[)）]$")  # of a label, in both languages


def lines(first: str, *rest: str) -> SafeString:
    """Return ``first`` with the non-empty texts of ``rest`` in small print below it."""
    small = format_html_join("", "<small>{}</small>", ((line,) for line in rest if line))
    if not small:
        return format_html("{}", first)
    return format_html('{}<span class="resourcepool-small">{}</span>', first, small)


def badge(css: str, text: str) -> SafeString:
    """Return ``text`` as a state, coloured by the CSS class ``css``."""
    return format_html('<span class="resourcepool-state {}">{}</span>', css, text)


def link_to_list(site: AdminSite, model: Any, text: object, **filters: object) -> SafeString | str:
    """Return ``text`` as a link to the filtered list of ``model``; plain text if the site has no such list."""
    return _link(admin_url(site, model, "changelist", **filters), text)


def link_to_page(site: AdminSite, model: Any, key: Any, text: object) -> SafeString | str:
    """Return ``text`` as a link to the page of the row ``key``; plain text if the site has no such page."""
    return _link(admin_url(site, model, "change", quote(key)), text)


def _link(url: str, text: object) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', url, text) if url else str(text)


def countdown(seconds: float, text: str, over: str) -> SafeString:
    """Return ``text`` whose "%s" counts down in the browser; at zero it becomes ``over``.

    The page contains the remaining seconds, so server and browser clocks are never compared. Without JavaScript the
    text stays as it was.
    """
    left = max(0.0, seconds)
    units = "|".join(f"{size} {_(unit)}" for unit, size in (*UNITS, ("%d s", 1)))
    return format_html(
        '<span class="resourcepool-left" role="timer" data-left="{}" data-text="{}" data-over="{}" data-units="{}">'
        "{}</span>",
        *(f"{left:.1f}", text, over, units, text % duration(left)),
    )


def format_duration(seconds: float) -> str:
    """Return a duration such as "12 min"; with hundredths below 10 s."""
    return duration(seconds) if seconds >= 10 else _("%.2f s") % seconds


def time_since(micros: int) -> str:
    """Return "3 h" for a past moment, given the (negative) microseconds until it (``MicrosUntil``)."""
    return duration(max(0.0, -micros / 1_000_000))


def ago(micros: int) -> str:
    """Return "3 h ago", given the same number."""
    return _("%s ago") % time_since(micros)


def for_time_since(micros: int) -> str:
    """Return "for 3 h", given the same number."""
    return _("for %s") % time_since(micros)


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


def column(field: str, title: Any, spell: Callable[[Any], str], name: str = "") -> Any:
    """Return a column of a list, or a line of a page, that shows a field formatted.

    Args:
        field: its name; None is shown as "".
        title: the heading.
        spell: returns the text of a value.
        name: for the CSS class, if other than ``field``.
    """

    def formatted(row: Any) -> str:
        value = getattr(row, field)
        return "" if value is None else spell(value)

    formatted.__name__ = name or field  # Django derives the CSS class from it
    return admin.display(description=title)(formatted)


datetime_column, duration_column = (
    partial(column, spell=format_datetime),
    partial(column, spell=format_duration),
)


def formatted_fields(fields: Iterable[Any], model: Any) -> list[Any]:
    """Return ``fields`` of ``model`` with seconds, dates and reasons replaced by columns that format them."""
    formatted = _formatted_columns(model)
    return [formatted.get(field, field) for field in fields]


@cache
def _formatted_columns(model: Any) -> dict[str, Any]:
    formatted: dict[str, Any] = {}
    for field in model._meta.fields:
        if is_seconds(field):
            formatted[field.name] = column(field.name, _without_unit(field.verbose_name), spell=exact_duration)
        elif isinstance(field, DateTimeField):
            formatted[field.name] = datetime_column(field.name, field.verbose_name)
        elif isinstance(field, SentenceField):
            formatted[field.name] = column(field.name, field.verbose_name, spell=localized)
    return formatted


_without_unit: Any = lazy(
    lambda label: UNIT_SUFFIX.sub("", str(label)), str
)  # lazy: the language is the reader's
