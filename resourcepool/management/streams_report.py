"""How streams stand, as text."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.layout import Column, or_dash, plain, table
from resourcepool.status.durations import duration
from resourcepool.status.streams import StreamStatus

COLUMNS = (
    Column(gettext_lazy("stream"), lambda one: one.name),
    Column(gettext_lazy("leader"), lambda one: or_dash(one.leader)),
    Column(gettext_lazy("leading for"), lambda one: or_dash(one.since, duration)),
    Column(gettext_lazy("standbys"), lambda one: one.standbys, is_number=True),
    Column(gettext_lazy("unfinished"), lambda one: one.depth, is_number=True),
    Column(gettext_lazy("oldest"), lambda one: or_dash(one.first and one.first.age, duration)),
    Column(gettext_lazy("done/min"), lambda one: one.done, is_number=True),
    Column(gettext_lazy("failed/min"), lambda one: one.failed, is_number=True),
    Column(gettext_lazy("dead-letter"), lambda one: one.dead, is_number=True),
)


def streams_as_text(found: Sequence[StreamStatus]) -> list[Any]:
    """Return a table of these, and why nothing runs in some of them."""
    if not found:
        return [_("There is no stream yet; add one: `manage.py resourcepool_streams add NAME`")]
    reasons = [plain(f"{one.name}: {one.because}", None) for one in found if one.because]
    return [table(found, COLUMNS), *(["", *reasons] if reasons else [])]
