"""How the dashboard spells its figures."""

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.events import localized
from resourcepool.queues.models import Move
from resourcepool.status.locks.summary import first_holders
from resourcepool.status.snapshots import duration

register = template.Library()
register.filter(localized)
register.filter(first_holders)


@register.filter
def span(seconds: float) -> str:
    """Spell so many seconds: "45 s", "12 min"."""
    return duration(seconds)


@register.filter
def brief(seconds: float) -> str:
    """Spell so many seconds, those below 10 with their fraction: "0.4 s"."""
    return duration(seconds) if seconds >= 10 else _("%.1f s") % seconds


@register.filter
def move(what: str) -> str:
    """Spell what happened to a queue."""
    return str(Move.Action(what).label) if what in Move.Action.values else what


@register.filter
def figure(count: float) -> str:
    """Spell a whole number, its thousands set apart."""
    return number_format(count, 0, use_l10n=True, force_grouping=True)


@register.filter
def code_spans(text: str) -> SafeString:
    """Set what stands between backticks as a command; everything else stays text."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if n % 2 else part,) for n, part in parts)
    )


@register.simple_tag
def link(address: str, text: object, id: str) -> SafeString:  # noqa: A002 (as the attribute is called)
    """Return ``text`` as a link with this id; alone if there is no address."""
    return format_html('<a id="{}" href="{}">{}</a>', id, address, text) if address else format_html("{}", text)


@register.filter
def percent(share: float) -> str:
    """Spell a share from 0 to 1; what is not quite nothing or all is not rounded to it."""
    if 0 < share < 0.01:
        return _("under 1 %")
    return _("%d %%") % min(round(share * 100), 100 if share >= 1 else 99)
