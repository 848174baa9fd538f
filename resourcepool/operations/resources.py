"""What operators do to resources."""

from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.conf import setting
from resourcepool.health_checks.candidates import CHECK_REASON
from resourcepool.history.leaks import acknowledge, are_leaks
from resourcepool.operations import check_now
from resourcepool.operations.fields import DurationField, TextField
from resourcepool.operations.operation import Operation
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import MAX_REASON, State, Status

REASON = TextField(
    name="reason",
    label=_("Reason"),
    max_length=MAX_REASON,
    help=_("One line for whoever asks later. Everybody who may see this list can read it."),
)
SPAN = DurationField(label=_("For"), help=_("for so long, e.g. 90s, 15m, 2h or 7d"))


def _leaks(rows: Any) -> Any:
    found = are_leaks(rows.model, list(rows.values_list("pk", "fence")))
    return rows.filter(pk__in=[pk for pk, _fence in found])


_GONE = _("%(count)d skipped: no longer there.")

ALL = (
    Operation(
        name="revoke",
        button=_("Free"),
        title=_("Free (take the running lease away)"),
        effect=_(
            "The lease ends now and the next one in line gets the resource at once. The holder is told within a"
            " third of its ttl; nothing can stop it from using the resource until then."
        ),
        fields=(REASON,),
        states=(State.LEASED, State.DRAINING),
        applicable=ResourceQuerySet.held,
        do=ResourceQuerySet.revoke,
        done_message=ngettext_lazy("%(count)d was freed.", "%(count)d were freed.", "count"),
        skipped_message=_("%(count)d skipped: no longer held, or held by someone else."),
        for_current_lease=True,
    ),
    Operation(
        name="quarantine",
        button=_("Quarantine"),
        title=_("Quarantine (put away as bad for a while)"),
        effect=_(
            "Handed to nobody until the time is over, then again by itself. A running lease is not disturbed."
        ),
        fields=(REASON, replace(SPAN, is_required=True)),
        states=(State.FREE, State.LEASED, State.COOLING, State.QUARANTINED),
        applicable=lambda rows: rows.filter(Q(in_service=True) | Q(status=Status.QUARANTINED)),
        do=ResourceQuerySet.quarantine,
        done_message=ngettext_lazy("%(count)d was quarantined.", "%(count)d were quarantined.", "count"),
        deferred_message=ngettext_lazy(
            "%(count)d is held: quarantined after its lease.",
            "%(count)d are held: quarantined after their leases.",
            "count",
        ),
        status=Status.QUARANTINED,
        skipped_message=_("%(count)d skipped: out of service by then, or no longer there."),
    ),
    Operation(
        name="return_to_service",
        button=_("Return to service"),
        title=_("Return to service (end a quarantine, a drain or a reservation)"),
        effect=_("Handed out again at once. Strikes are forgotten. A running lease is not disturbed."),
        fields=(replace(REASON, is_required=False),),
        states=(State.QUARANTINED, State.DRAINING, State.OUT, State.RESERVED, State.RETIRED),
        applicable=lambda rows: rows.filter(Q(in_service=False) | ~Q(status=Status.IN_SERVICE)),
        bulk_targets=lambda rows: rows.filter(in_service=False, status=Status.OUT_OF_SERVICE),
        do=ResourceQuerySet.return_to_service,
        done_message=ngettext_lazy(
            "%(count)d was returned to service.", "%(count)d were returned to service.", "count"
        ),
        skipped_message=_("%(count)d skipped: in service already, or no longer there."),
    ),
    Operation(
        name="drain",
        button=_("Drain"),
        title=_("Drain (take out of service after the running lease)"),
        effect=_(
            "Handed to nobody any more. A running lease is not disturbed: it ends when its holder is done. Without"
            " an end it stays out until somebody returns it."
        ),
        fields=(REASON, SPAN),
        bulk_targets=lambda rows: rows.filter(in_service=True),
        do=ResourceQuerySet.drain,
        done_message=ngettext_lazy(
            "%(count)d was taken out of service.", "%(count)d were taken out of service.", "count"
        ),
        deferred_message=ngettext_lazy(
            "%(count)d is held: it leaves service after its lease.",
            "%(count)d are held: they leave service after their leases.",
            "count",
        ),
        status=Status.OUT_OF_SERVICE,
        skipped_message=_GONE,
    ),
    Operation(
        name="reserve",
        button=_("Reserve"),
        title=_("Reserve for a person"),
        effect=_(
            "Handed to no program. If it is held, it is theirs as soon as the running lease ends. Without an end it"
            " stays reserved until somebody returns it."
        ),
        fields=(TextField(name="name", label=_("For whom"), max_length=80), REASON, SPAN),
        do=ResourceQuerySet.reserve,
        done_message=ngettext_lazy("%(count)d was reserved.", "%(count)d were reserved.", "count"),
        deferred_message=ngettext_lazy(
            "%(count)d is held: reserved after its lease.",
            "%(count)d are held: reserved after their leases.",
            "count",
        ),
        status=Status.RESERVED,
        skipped_message=_GONE,
    ),
    Operation(
        name="acknowledge",
        button=_("Acknowledge leak"),
        title=_("Acknowledge leak (the running lease is meant to be held for so long)"),
        effect=_(
            "Nothing changes about the lease. The alarm “leaked” counts it no more, in about two seconds; the"
            " history keeps who knows of it, and why."
        ),
        fields=(REASON,),
        states=(State.LEASED, State.DRAINING),
        is_offered=lambda one: bool(are_leaks(type(one), [(one.pk, one.fence)])),
        applicable=_leaks,
        do=acknowledge,
        done_message=ngettext_lazy(
            "%(count)d leak was acknowledged.", "%(count)d leaks were acknowledged.", "count"
        ),
        skipped_message=_(
            "%(count)d skipped: not reported as leaked within the last hour, or acknowledged already."
        ),
        for_current_lease=True,
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
        states=(State.FREE, State.COOLING, State.QUARANTINED),
        is_for=lambda model: model._meta.label in setting("CHECKS"),
        applicable=lambda rows: rows.available() | rows.quarantined().filter(reason__code=CHECK_REASON),
        do=lambda rows, actor: check_now.check_now(rows.model, list(rows.values_list("pk", flat=True)), actor),
        done_message=ngettext_lazy(
            "%(count)d was checked; its last check says what was found.",
            "%(count)d were checked; the list says what was found.",
            "count",
        ),
        skipped_message=_(
            "%(count)d skipped: held, out of service, waited for, or in a quarantine that no check decided."
        ),
        max_rows=check_now.MAX_CHECKS,
    ),
)
