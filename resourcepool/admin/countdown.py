"""Spans that go on counting down in the browser; without its script they stay as the server wrote them."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from resourcepool.status.durations import UNITS, duration


def countdown(seconds: float, text: str, over: str) -> SafeString:
    """Return ``text`` for the page, whose "%s" is how long is left of ``seconds``; once that is 0 it says ``over``.

    The server says how much is left and the browser how long ago that was: neither clock is compared with the other.
    """
    left = max(0.0, seconds)
    units = "|".join(f"{size} {_(unit)}" for unit, size in (*UNITS, ("%d s", 1)))
    return format_html(
        '<span class="resourcepool-left" role="timer" data-left="{}" data-text="{}" data-over="{}" data-units="{}">'
        "{}</span>",
        f"{left:.1f}",
        text,
        over,
        units,
        text % duration(left),
    )
