"""Format states, links, dates and durations, the same way in every list and on every page."""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.db.models import DateTimeField
from django.utils.functional import lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from resourcepool.dashboard.links import admin_url
from resourcepool.db.dialect.fields import is_seconds
from resourcepool.events import localized
from resourcepool.events.field import SentenceField
from resourcepool.operations import Operation
from resourcepool.status.snapshots import seconds_since
from resourcepool.status.times import UNITS, duration, exact_duration, format_datetime, precise_duration
from resourcepool.translation import gettext as _

UNIT_SUFFIX = re.compile(r" ?[(（](s|秒)[)）]$")  # of a label, in both languages


def key_and_name(resource: Any) -> str:
    """Return "17: http://..": logs, events and commands name a resource by its key."""
    key, name = str(resource.pk), str(resource)
    return name if key == name else f"{key}: {name}"


def title_of(resource: Any) -> str:
    return f"{capfirst(resource._meta.verbose_name)} {key_and_name(resource)}"


def lines(first: str, *rest: str) -> SafeString:
    """Return ``first`` with the non-empty texts of ``rest`` in small print below it."""
    small = format_html_join("", "<small>{}</small>", ((line,) for line in rest if line))
    if not small:
        return format_html("{}", first)
    return format_html('{}<span class="resourcepool-small">{}</span>', first, small)


def joined(*parts: str) -> SafeString:
    """Return the non-empty ``parts`` in one line."""
    return format_html_join(" · ", "{}", ((part,) for part in parts if part))


def link_to_list(site: AdminSite, model: Any, text: object, **filters: object) -> SafeString | str:
    """Return ``text`` as a link to the filtered list of ``model``; plain text if the site has no such list."""
    return _link(admin_url(site, model, "changelist", **filters), text)


def link_to_page(site: AdminSite, model: Any, key: Any, text: object) -> SafeString | str:
    """Return ``text`` as a link to the page of the row ``key``; plain text if the site has no such page."""
    return _link(admin_url(site, model, "change", quote(key)), text)


def _link(url: str, text: object) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', url, text) if url else str(text)


def operation_button(operation: Operation, url: str, element_id: str = "") -> SafeString:
    """Return a button, inside a form, that leads to the confirmation page of an operation; or runs a harmless one."""
    css = "button resourcepool-destructive" if operation.is_destructive else "button"
    id_ = format_html(' id="{}"', element_id) if element_id else ""
    if not operation.is_harmless:
        text = '<a class="{}"{} href="{}" title="{}">{}</a>'
        return format_html(text, css, id_, url, operation.title, operation.button)
    text = (
        '<button type="submit" class="{}"{} formaction="{}" name="confirmed" value="yes" title="{}">{}</button>'
    )
    return format_html(text, css, id_, url, operation.title, operation.button)


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


def for_time_since(micros: int) -> str:
    """Return "for 3 h" for a past time, given the (negative) microseconds until it (``MicrosUntil``)."""
    return _("for %s") % duration(seconds_since(micros) or 0.0)


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
    partial(column, spell=precise_duration),
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
            formatted[field.name] = column(field.name, without_unit(field.verbose_name), spell=exact_duration)
        elif isinstance(field, DateTimeField):
            formatted[field.name] = datetime_column(field.name, field.verbose_name)
        elif isinstance(field, SentenceField):
            formatted[field.name] = column(field.name, field.verbose_name, spell=localized)
    return formatted


without_unit: Any = lazy(
    lambda label: UNIT_SUFFIX.sub("", str(label)), str
)  # lazy: the language is the reader's
