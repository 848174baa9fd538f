"""The filters beside the lists of resources."""

from typing import Any

from django.db.models import Q

from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.resources.state import State, Status, Verdict
from resourcepool.resources.tags import parse_tags
from resourcepool.status.resources.holders import on_host
from resourcepool.status.resources.pools import in_state
from resourcepool.translation import gettext_lazy as _

HELD, NEVER = "held", "never"
AFTER_LEASE = (
    Status.QUARANTINED,
    Status.RESERVED,
    Status.RETIRED,
)  # of a draining resource; same values as the states


def _in_state(rows: Any, state: str) -> Any:
    if state == HELD:
        return rows.held()
    if state not in State.values:
        return rows
    draining = Q(in_state(State.DRAINING), status=state) if state in AFTER_LEASE else Q(pk__in=())
    return rows.filter(in_state(State(state)) | draining)


def _with_verdict(rows: Any, verdict: str) -> Any:
    if verdict == NEVER:
        return rows.filter(checked_at=None)
    return rows.filter(verdict=verdict) if verdict in Verdict.values else rows


def _tagged(rows: Any, text: str) -> Any:
    try:
        tags = parse_tags(text)
    except ValueError:
        return rows.none()
    return rows.filter(Q(*(("tags__contains", f" {tag} ") for tag in tags)))


# Includes draining resources that will have the state after their lease.
StateFilter = choice_filter(
    "state", _("state"), [(HELD, _("held (leased or draining)")), *State.choices], _in_state
)
VerdictFilter = choice_filter(
    "verdict", _("last check"), [*Verdict.choices, (NEVER, _("never checked"))], _with_verdict
)
TagFilter = text_filter("tag", _("tags"), _("one or more"), _tagged)
HolderFilter = text_filter(
    "held_by", _("holder"), _("starts with"), lambda rows, text: rows.held().filter(holder__startswith=text)
)
# Found in the default holder name or in the history.
HostFilter = text_filter(
    "on_host", _("host of the holder"), _("whole name"), lambda rows, text: on_host(rows.held(), text)
)
CountryFilter = text_filter(
    "in_country", _("country"), _("two letters"), lambda rows, text: rows.filter(country=text.upper())
)
