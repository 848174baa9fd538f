"""What an operator can do to resources: what is asked, whom it concerns, and what is said afterwards."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.admin.resources import checking
from resourcepool.admin.resources.checking import check_now
from resourcepool.admin.resources.forms import (
    NoReasonForm,
    OptionalReasonForm,
    QuarantineForm,
    ReasonForm,
    ReserveForm,
    SpanForm,
)
from resourcepool.conf import setting
from resourcepool.history.leaks import acknowledge, are_leaks
from resourcepool.resources.state import State, Status
from resourcepool.validity.due import OURS

AT_ONCE = 10_000  # the history could not follow more

Entered = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kind of change.

    Attributes:
        button: what the button says; ``title``: the same with what it means.
        effect: what it does to leases, for somebody who has never done it.
        form: what is asked.
        concerned: narrows rows to those it changes something about.
        do: makes the change (rows, what was entered, the operator); returns how many were changed.
        done, otherwise: what is said of those it was done to and of the others; plural, with ``count``.
        states: in which the page of a resource offers it: elsewhere it would change nothing.
        later: what is said of those among them whose lease still runs, because it waits for the end of that; None: it
            does not.
        status: in which those are then.
        is_for: whether it can be done to resources of this model at all.
        is_offered: whether its page offers it of a resource in one of these states.
        of_a_grant: concerns the lease that was seen, not whoever has the resource by now.
        most: to how many it is done at once; more would keep the web server busy for too long.
    """

    name: str
    button: Any
    title: Any
    effect: Any
    form: type[ReasonForm]
    concerned: Callable[[Any], Any]
    do: Callable[[Any, Entered, str], int]
    done: Any
    otherwise: Any
    later: Any = None
    status: Status | None = None
    states: Collection[State] = tuple(State)
    is_for: Callable[[Any], bool] = lambda model: True
    is_offered: Callable[[Any], bool] = lambda resource: True
    of_a_grant: bool = False
    most: int = AT_ONCE


def _free(rows: Any, entered: Entered, actor: str) -> int:
    return int(rows.revoke(entered["reason"], actor=actor))


def _quarantine(rows: Any, entered: Entered, actor: str) -> int:
    return int(rows.quarantine(entered["reason"], entered["duration"], actor=actor))


def _return(rows: Any, entered: Entered, actor: str) -> int:
    return int(rows.return_to_service(reason=entered["reason"], actor=actor))


def _drain(rows: Any, entered: Entered, actor: str) -> int:
    return int(rows.take_out(entered["reason"], duration=entered["duration"], actor=actor))


def _reserve(rows: Any, entered: Entered, actor: str) -> int:
    return int(rows.reserve(entered["name"], entered["reason"], duration=entered["duration"], actor=actor))


def _acknowledge(rows: Any, entered: Entered, actor: str) -> int:
    return acknowledge(rows, entered["reason"], actor)


def _leaks(rows: Any) -> Any:
    found = are_leaks(rows.model, list(rows.values_list("pk", "fence")))
    return rows.filter(pk__in=[pk for pk, _fence in found])


def _is_leak(resource: Any) -> bool:
    return bool(are_leaks(type(resource), [(resource.pk, resource.fence)]))


def _has_checks(model: Any) -> bool:
    return model._meta.label in setting("CHECKS")


def _check(rows: Any, entered: Entered, actor: str) -> int:
    return check_now(rows.model, list(rows.values_list("pk", flat=True)), actor)


def _checkable(rows: Any) -> Any:
    parked = rows.quarantined()
    return rows.available() | parked.filter(reason__startswith=OURS)


def _everything(rows: Any) -> Any:
    return rows


_GONE = ngettext_lazy("%(count)d is not there any more.", "%(count)d are not there any more.", "count")

OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(
            name="free",
            button=_("Free"),
            title=_("Free (take the running lease away)"),
            effect=_(
                "The lease ends now and the next one in line gets the resource at once. The holder is told within a"
                " third of its ttl; nothing can stop it from using the resource until then."
            ),
            form=ReasonForm,
            states=(State.LEASED, State.DRAINING),
            concerned=lambda rows: rows.held(),
            do=_free,
            done=ngettext_lazy("%(count)d was freed.", "%(count)d were freed.", "count"),
            otherwise=ngettext_lazy(
                "%(count)d was left alone: not held any more, or by somebody else.",
                "%(count)d were left alone: not held any more, or by somebody else.",
                "count",
            ),
            of_a_grant=True,
        ),
        Operation(
            name="quarantine",
            button=_("Quarantine"),
            title=_("Quarantine (put away as bad for a while)"),
            effect=_(
                "Handed to nobody until the time is over, then again by itself. A running lease is not disturbed."
            ),
            form=QuarantineForm,
            states=(State.FREE, State.LEASED, State.COOLING, State.QUARANTINED),
            concerned=lambda rows: rows.filter(Q(in_service=True) | Q(status=Status.QUARANTINED)),
            do=_quarantine,
            done=ngettext_lazy("%(count)d was quarantined.", "%(count)d were quarantined.", "count"),
            later=ngettext_lazy(
                "%(count)d is held: quarantined after its lease.",
                "%(count)d are held: quarantined after their leases.",
                "count",
            ),
            status=Status.QUARANTINED,
            otherwise=ngettext_lazy(
                "%(count)d was left alone: out of service by then, or not there any more.",
                "%(count)d were left alone: out of service by then, or not there any more.",
                "count",
            ),
        ),
        Operation(
            name="return_to_service",
            button=_("Return to service"),
            title=_("Return to service (end a quarantine, a drain or a reservation)"),
            effect=_("Handed out again at once. Strikes are forgotten. A running lease is not disturbed."),
            form=OptionalReasonForm,
            states=(State.QUARANTINED, State.DRAINING, State.OUT, State.RESERVED, State.RETIRED),
            concerned=lambda rows: rows.filter(Q(in_service=False) | ~Q(status=Status.IN_SERVICE)),
            do=_return,
            done=ngettext_lazy(
                "%(count)d was returned to service.", "%(count)d were returned to service.", "count"
            ),
            otherwise=ngettext_lazy(
                "%(count)d was in service already, or is not there any more.",
                "%(count)d were in service already, or are not there any more.",
                "count",
            ),
        ),
        Operation(
            name="drain",
            button=_("Drain"),
            title=_("Drain (take out of service after the running lease)"),
            effect=_(
                "Handed to nobody any more. A running lease is not disturbed: it ends when its holder is done. Without"
                " an end it stays out until somebody returns it."
            ),
            form=SpanForm,
            concerned=_everything,
            do=_drain,
            done=ngettext_lazy(
                "%(count)d was taken out of service.", "%(count)d were taken out of service.", "count"
            ),
            later=ngettext_lazy(
                "%(count)d is held: it leaves service after its lease.",
                "%(count)d are held: they leave service after their leases.",
                "count",
            ),
            status=Status.OUT_OF_SERVICE,
            otherwise=_GONE,
        ),
        Operation(
            name="reserve",
            button=_("Reserve"),
            title=_("Reserve for a person"),
            effect=_(
                "Handed to no program. If it is held, it is theirs as soon as the running lease ends. Without an end it"
                " stays reserved until somebody returns it."
            ),
            form=ReserveForm,
            concerned=_everything,
            do=_reserve,
            done=ngettext_lazy("%(count)d was reserved.", "%(count)d were reserved.", "count"),
            later=ngettext_lazy(
                "%(count)d is held: reserved after its lease.",
                "%(count)d are held: reserved after their leases.",
                "count",
            ),
            status=Status.RESERVED,
            otherwise=_GONE,
        ),
        Operation(
            name="acknowledge",
            button=_("Acknowledge leak"),
            title=_("Acknowledge leak (the running lease is meant to be held for so long)"),
            effect=_(
                "Nothing changes about the lease. The alarm “leaked” counts it no more, in about two seconds; the"
                " history keeps who knows of it, and why."
            ),
            form=ReasonForm,
            states=(State.LEASED, State.DRAINING),
            is_offered=_is_leak,
            concerned=_leaks,
            do=_acknowledge,
            done=ngettext_lazy(
                "%(count)d leak was acknowledged.", "%(count)d leaks were acknowledged.", "count"
            ),
            otherwise=ngettext_lazy(
                "%(count)d was left alone: not reported as leaked within the last hour, or acknowledged already.",
                "%(count)d were left alone: not reported as leaked within the last hour, or acknowledged already.",
                "count",
            ),
            of_a_grant=True,
        ),
        Operation(
            name="check",
            button=_("Check now"),
            title=_("Check now"),
            effect=_(
                "Each is leased while it is looked at; what somebody holds is left alone. Bad ones are quarantined,"
                " good ones that a check had put in quarantine go back to service. A quarantine that a person or a"
                " program decided is left alone. This page waits for it, half a minute at most."
            ),
            form=NoReasonForm,
            states=(State.FREE, State.COOLING, State.QUARANTINED),
            is_for=_has_checks,
            concerned=_checkable,
            do=_check,
            done=ngettext_lazy(
                "%(count)d was checked; its last check says what was found.",
                "%(count)d were checked; the list says what was found.",
                "count",
            ),
            otherwise=ngettext_lazy(
                "%(count)d was left alone: held, out of service, in a quarantine that no check decided, or somebody"
                " waits for it.",
                "%(count)d were left alone: held, out of service, in a quarantine that no check decided, or somebody"
                " waits for them.",
                "count",
            ),
            most=checking.AT_ONCE,
        ),
    )
}
