"""How dispensers stand, as text."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.layout import Column, ago, or_dash, plain, table
from resourcepool.status.dispensers import DispenserStatus
from resourcepool.status.durations import duration

COLUMNS = (
    Column(gettext_lazy("dispenser"), lambda one: one.name),
    Column(gettext_lazy("ready"), lambda one: one.depth, is_number=True),
    Column(gettext_lazy("oldest"), lambda one: or_dash(one.oldest, duration)),
    Column(gettext_lazy("assigned"), lambda one: one.assigned, is_number=True),
    Column(gettext_lazy("buckets"), lambda one: one.live, is_number=True),
    Column(gettext_lazy("expired"), lambda one: one.expired, is_number=True),
    Column(gettext_lazy("done/min"), lambda one: one.done, is_number=True),
    Column(gettext_lazy("failed"), lambda one: one.failed, is_number=True),
    Column(gettext_lazy("last rebuild"), lambda one: ago(one.rebuilt)),
)


def dispensers_as_text(found: Sequence[DispenserStatus]) -> list[Any]:
    """Return a table of these, and why nothing is handed out by some of them."""
    if not found:
        return [_("There is no dispenser yet: it is made when it is first used.")]
    reasons = [plain(f"{one.name}: {one.because}", None) for one in found if one.because]
    return [table(found, COLUMNS), *(["", *reasons] if reasons else [])]
