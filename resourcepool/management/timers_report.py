"""How timers stand, as text."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.layout import Column, or_dash, plain, table
from resourcepool.status.durations import duration
from resourcepool.status.timers import TopicStatus

COLUMNS = (
    Column(gettext_lazy("topic"), lambda one: one.name),
    Column(gettext_lazy("nodes"), lambda one: len(one.nodes), is_number=True),
    Column(gettext_lazy("pending"), lambda one: one.pending, is_number=True),
    Column(gettext_lazy("next in"), lambda one: or_dash(one.next_in, duration)),
    Column(gettext_lazy("due"), lambda one: one.due, is_number=True),
    Column(gettext_lazy("late by"), lambda one: or_dash(one.late or None, duration)),
    Column(gettext_lazy("running"), lambda one: one.running, is_number=True),
    Column(gettext_lazy("done/min"), lambda one: one.done, is_number=True),
    Column(gettext_lazy("failed/min"), lambda one: one.failed, is_number=True),
    Column(gettext_lazy("dead-letter"), lambda one: one.dead, is_number=True),
)


def topics_as_text(found: Sequence[TopicStatus]) -> list[Any]:
    """Return a table of these, and why nothing fires in some of them."""
    if not found:
        return [_("There is no timer yet, and no topic: the first timer makes it.")]
    reasons = [plain(f"{one.name}: {one.because}", None) for one in found if one.because]
    return [table(found, COLUMNS), *(["", *reasons] if reasons else [])]
