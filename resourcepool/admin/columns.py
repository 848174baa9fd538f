"""Columns of lists and lines of pages: states, links, moments and durations, spelled the same on every page."""

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
from django.utils.translation import gettext as _

from resourcepool.dashboard.links import address
from resourcepool.database.columns import is_seconds
from resourcepool.events import SentenceField, localized
from resourcepool.status.snapshots import UNITS, duration, exact_duration, with_zone

UNIT = re.compile(r" ?[(（](s|秒)[)）]$")  # at the end of a label, in each language


def lines(first: str, *rest: str) -> SafeString:
    """Return the texts one below the other, those after the first in small print; empty ones are left out."""
    small = format_html_join("", "<small>{}</small>", ((line,) for line in rest if line))
    if not small:
        return format_html("{}", first)
    return format_html('{}<span class="resourcepool-small">{}</span>', first, small)


def badge(css: str, text: str) -> SafeString:
    """Return a state in the colour of a class of the style sheet."""
    return format_html('<span class="resourcepool-state {}">{}</span>', css, text)


def link_to_list(site: AdminSite, model: Any, text: object, **wanted: object) -> SafeString | str:
    """Return ``text`` as a link to the rows of ``model`` that are ``wanted``; plain if the site has no such list."""
    return _link(address(site, model, "changelist", **wanted), text)


def link_to_page(site: AdminSite, model: Any, key: Any, text: object) -> SafeString | str:
    """Return ``text`` as a link to the page of the row with this key; plain if the site has no such page."""
    return _link(address(site, model, "change", quote(key)), text)


def _link(there: str, text: object) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', there, text) if there else str(text)


def countdown(seconds: float, text: str, over: str) -> SafeString:
    """Return ``text``, whose "%s" goes on counting down in the browser; once nothing is left it says ``over``.

    The server sends how much is left, so the two clocks are never compared. Without scripts, the text stays as it is.
    """
    left = max(0.0, seconds)
    units = "|".join(f"{size} {_(unit)}" for unit, size in (*UNITS, ("%d s", 1)))
    return format_html(
        '<span class="resourcepool-left" role="timer" data-left="{}" data-text="{}" data-over="{}" data-units="{}">'
        "{}</span>",
        *(f"{left:.1f}", text, over, units, text % duration(left)),
    )


def format_duration(seconds: float) -> str:
    """Return a duration; one below 10 s with its fraction."""
    return duration(seconds) if seconds >= 10 else _("%.2f s") % seconds


def passed(micros: int) -> str:
    """Return the time since a moment, given the microseconds until it (``MicrosUntil``)."""
    return duration(max(0.0, -micros / 1_000_000))


def ago(micros: int) -> str:
    """Return the same: "3 h ago"."""
    return _("%s ago") % passed(micros)


def for_time_since(micros: int) -> str:
    """Return the same as a duration: "for 3 h"."""
    return _("for %s") % passed(micros)


def format_datetime(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07", as in logs, in the time zone that ``zone`` names."""
    return f"{_local(at):%Y-%m-%d %H:%M:%S}"


def format_short_datetime(at: datetime.datetime, now: datetime.datetime) -> str:
    """Return a moment for a narrow column: without today's date."""
    at, now = _local(at), _local(now)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else format_datetime(at)


def zone() -> str:
    """Return a sentence that names the time zone of the page."""
    now = timezone.localtime(datetime.datetime.now(datetime.UTC))
    told = {"name": timezone.get_current_timezone_name(), "offset": now.isoformat()[-6:]}
    return _("Times are shown in %(name)s (%(offset)s).") % told


def _local(at: datetime.datetime) -> datetime.datetime:
    return timezone.localtime(with_zone(at))


def column(field: str, title: Any, spell: Callable[[Any], str], name: str = "") -> Any:
    """Return a column of a list, or a line of a page: what ``spell`` makes of the field, unless it is None.

    ``name``: for the style sheet, if not that of the field.
    """

    def spelled(row: Any) -> str:
        value = getattr(row, field)
        return "" if value is None else spell(value)

    spelled.__name__ = name or field  # what the page calls it by
    return admin.display(description=title)(spelled)


datetime_column, duration_column = (
    partial(column, spell=format_datetime),
    partial(column, spell=format_duration),
)


def formatted_fields(fields: Iterable[Any], model: Any) -> list[Any]:
    """Return read-only ``fields``; seconds, moments and reasons are replaced by columns that format them."""
    spelled = _spelled(model)
    return [spelled.get(field, field) for field in fields]


@cache
def _spelled(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in model._meta.fields:
        if is_seconds(field):
            found[field.name] = column(field.name, _without_unit(field.verbose_name), spell=exact_duration)
        elif isinstance(field, DateTimeField):
            found[field.name] = datetime_column(field.name, field.verbose_name)
        elif isinstance(field, SentenceField):
            found[field.name] = column(field.name, field.verbose_name, spell=localized)
    return found


_without_unit: Any = lazy(lambda label: UNIT.sub("", str(label)), str)  # in the language of the reader
