"""Filters and tags that format numbers, durations and links for the dashboard."""

from functools import partial
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from resourcepool.events import localized
from resourcepool.queues.models import Move
from resourcepool.status.badge import Badge
from resourcepool.status.locks.cycles import lock_badge
from resourcepool.status.locks.summary import first_holders, past_text
from resourcepool.status.system import SEPARATOR, STATUS, Figure, figure_text, number
from resourcepool.status.times import TENTHS, duration, precise_duration
from resourcepool.translation import gettext as _

register = template.Library()
register.filter(localized)
register.filter(first_holders)
register.filter(lock_badge)
register.filter(past_text)
register.filter(duration)
register.filter(number)
register.filter("precise_duration", partial(precise_duration, text=TENTHS))


@register.filter
def move_label(what: str) -> str:
    return str(Move.Action(what).label) if what in Move.Action.values else what


@register.filter
def code_spans(text: str) -> SafeString:
    """Format text between backticks as code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if n % 2 else part,) for n, part in parts)
    )


@register.simple_tag
def link(address: str, text: object, id: str) -> SafeString:  # noqa: A002 (the name of the attribute)
    """Return ``text`` as a link with this HTML id; plain text if ``address`` is empty."""
    return format_html('<a id="{}" href="{}">{}</a>', id, address, text) if address else format_html("{}", text)


@register.simple_tag
def cell(figure: Figure, row: Any) -> SafeString:
    """Return a figure of the status of a row of a panel, its first number linked to its list."""
    if figure is STATUS:
        badge: Badge = row.status.badge
        return badge.html
    text = figure_text(figure, row.status)
    if figure.rows is None:
        return format_html("{}", text)
    first, *others = text.split(SEPARATOR)
    linked = link(row.links[figure.rows.name], first, f"{row.id}-{figure.rows.name}")
    return format_html_join(SEPARATOR, "{}", ((part,) for part in [linked, *others]))


@register.filter
def percent(share: float) -> str:
    """Format a share from 0 to 1; only exactly 0 and 1 become 0% and 100%."""
    if 0 < share < 0.01:
        return _("under 1%")
    return _("%d%%") % min(round(share * 100), 100 if share >= 1 else 99)
