"""The filters beside the lists of resources."""

from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.resources.state import State, Status, Verdict
from resourcepool.resources.tags import parse_tags
from resourcepool.status.holders import on_host
from resourcepool.status.pools import in_state

HELD, NEVER = "held", "never"
AFTER_A_LEASE = (Status.QUARANTINED, Status.RESERVED, Status.RETIRED)  # called as the states that they lead to


def _in_state(rows: Any, wanted: str) -> Any:
    if wanted == HELD:
        return rows.held()
    if wanted not in State.values:
        return rows
    later = Q(in_state(State.DRAINING), status=wanted) if wanted in AFTER_A_LEASE else Q(pk__in=())
    return rows.filter(in_state(State(wanted)) | later)


def _found(rows: Any, wanted: str) -> Any:
    if wanted == NEVER:
        return rows.filter(checked_at=None)
    return rows.filter(verdict=wanted) if wanted in Verdict.values else rows


def _tagged(rows: Any, text: str) -> Any:
    try:
        wanted = parse_tags(text)
    except ValueError:
        return rows.none()
    return rows.filter(Q(*(("tags__contains", f" {word} ") for word in wanted)))


# What comes after a lease may be yet to come.
StateFilter = choice_filter(
    "state", _("state"), [(HELD, _("held (leased or draining)")), *State.choices], _in_state
)
VerdictFilter = choice_filter(
    "verdict", _("last check"), [*Verdict.choices, (NEVER, _("never checked"))], _found
)
TagFilter = text_filter("tag", _("tags"), _("one or several"), _tagged)
HolderFilter = text_filter(
    "held_by", _("holder"), _("how it begins"), lambda rows, text: rows.held().filter(holder__startswith=text)
)
# As its default name or the history tells it.
HostFilter = text_filter(
    "on_host", _("host of the holder"), _("its whole name"), lambda rows, text: on_host(rows.held(), text)
)
CountryFilter = text_filter(
    "in_country", _("country"), _("two letters"), lambda rows, text: rows.filter(country=text.upper())
)
