"""How channels stand, as text."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.layout import or_dash, plain
from resourcepool.management.tables import Column, counts, table
from resourcepool.status.channels import ChannelStatus
from resourcepool.status.durations import duration

COLUMNS = (
    Column(gettext_lazy("channel"), lambda one: one.name),
    counts(gettext_lazy("last"), lambda one: one.last),
    counts(gettext_lazy("kept"), lambda one: one.kept),
    counts(gettext_lazy("published/min"), lambda one: one.published),
    counts(gettext_lazy("without a name"), lambda one: one.listeners),
    counts(gettext_lazy("durable"), lambda one: len(one.subscriptions)),
    counts(gettext_lazy("to read"), lambda one: one.unread),
)
OF_SUBSCRIPTIONS = (
    Column(gettext_lazy("subscription"), lambda one: one.name),
    counts(gettext_lazy("cursor"), lambda one: one.cursor),
    counts(gettext_lazy("to read"), lambda one: one.unread),
    Column(gettext_lazy("the first for"), lambda one: or_dash(one.behind or None, duration)),
    counts(gettext_lazy("removed"), lambda one: one.lost),
    counts(gettext_lazy("missed"), lambda one: one.missed),
    Column(gettext_lazy("read by"), lambda one: or_dash(one.holder)),
)


def channels_as_text(found: Sequence[ChannelStatus]) -> list[Any]:
    """Return a table of these, of one also its subscriptions, and who lags behind."""
    if not found:
        return [_("There is no channel yet: the first message makes it.")]
    reasons = [plain(f"{one.name}: {one.because}", None) for one in found if one.because]
    parts: list[Any] = [table(found, COLUMNS)]
    if len(found) == 1 and found[0].subscriptions:
        parts += ["", table(found[0].subscriptions, OF_SUBSCRIPTIONS)]
    return [*parts, *(["", *reasons] if reasons else [])]
