"""Operations on resources. Health checks run in a thread, so that a page answers in time even if a checker hangs."""

from collections.abc import Collection
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any

from django.db.models import Q

from resourcepool.clock import monotonic
from resourcepool.conf import setting
from resourcepool.db import background
from resourcepool.exceptions import ResourcePoolError
from resourcepool.health_checks.check import CheckOptions, Tally, check
from resourcepool.health_checks.lease import CHECK_REASON
from resourcepool.history.models import acknowledge, select_open_leaks
from resourcepool.operations.operation import REASON, DurationField, Operation, TextField
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import State, Status
from resourcepool.translation import gettext, gettext_lazy as _, ngettext_lazy

MAX_CHECKS = 20
TIME_LIMIT = 25.0  # seconds; no check starts later, because web servers time out after 30
GRACE = 2.0  # seconds to release resources that were not checked


class Unfinished(ResourcePoolError):
    """The time was up after ``done`` checks."""

    def __init__(self, done: int = 0) -> None:
        super().__init__(
            gettext(
                "Not all checks finished within %d s; select fewer. Resources that are still being checked"
                " are released unchanged when their check ends."
            )
            % TIME_LIMIT
        )
        self.done = done


def check_now(model: Any, pks: Collection[Any], actor: str) -> int:
    """Check these resources; return the number of checked ones after TIME_LIMIT + GRACE seconds at most.

    Quarantines that were not set by a check are not ended.

    Args:
        actor: the operator, for the history.

    Raises:
        Unfinished: the checks took longer.
        CheckerBroken, BadOption: as ``check`` does.
    """
    tally, ended, until = Tally(), Future[None](), monotonic() + TIME_LIMIT

    def checkpoint() -> None:
        if monotonic() > until:
            raise Unfinished

    def work() -> None:
        try:
            check(model, pks, options=CheckOptions(actor=actor), on_result=tally, checkpoint=checkpoint)
        except Exception as error:  # noqa: BLE001 (raised again by ended.result())
            ended.set_exception(error)
        else:
            ended.set_result(None)

    background.start("check", work)
    wait([ended], timeout=TIME_LIMIT + GRACE)
    done = sum(tally.verdicts.values())
    if not ended.done() or isinstance(ended.exception(), Unfinished):
        raise Unfinished(done)
    ended.result()
    return done


SPAN = DurationField(label=_("For"), help=_("duration, e.g. 90s, 15m, 2h or 7d"))


def _leaks(rows: Any) -> Any:
    leaks = select_open_leaks(rows.model, list(rows.values_list("pk", "fence")))
    return rows.filter(pk__in=[pk for pk, _fence in leaks])


_GONE = _("%(count)d skipped: no longer there.")

ALL = (
    Operation(
        name="revoke",
        is_destructive=True,
        button=_("Revoke"),
        title=_("Revoke (end the running lease)"),
        effect=_(
            "The lease ends now, and the next waiter gets the resource at once. The holder is notified"
            " within a third of its ttl; until then it may keep using the resource."
        ),
        fields=(REASON,),
        states=(State.LEASED, State.DRAINING),
        applicable=ResourceQuerySet.held,
        do=ResourceQuerySet.revoke,
        done_message=ngettext_lazy(
            "The lease of %(what)s was revoked.", "The leases of %(what)s were revoked.", "count"
        ),
        skipped_message=_("%(count)d skipped: no longer held, or held by someone else."),
        for_current_lease=True,
    ),
    Operation(
        name="quarantine",
        button=_("Quarantine"),
        title=_("Quarantine (temporarily out of service as faulty)"),
        effect=_("Not leased until then; returns automatically. A running lease is not disturbed."),
        fields=(REASON, replace(SPAN, is_required=True)),
        states=(State.FREE, State.LEASED, State.COOLING, State.QUARANTINED),
        applicable=lambda rows: rows.filter(Q(in_service=True) | Q(status=Status.QUARANTINED)),
        do=ResourceQuerySet.quarantine,
        done_message=ngettext_lazy("%(what)s was quarantined.", "%(what)s were quarantined.", "count"),
        deferred_message=ngettext_lazy(
            "%(what)s is held: quarantined after its lease.",
            "%(what)s are held: quarantined after their leases.",
            "count",
        ),
        status=Status.QUARANTINED,
        skipped_message=_("%(count)d skipped: already out of service, or no longer there."),
    ),
    Operation(
        name="return_to_service",
        is_harmless=True,
        button=_("Return to service"),
        title=_("Return to service (end a quarantine, a drain or a reservation)"),
        effect=_("Can be leased again at once. Strikes are reset. A running lease is not disturbed."),
        fields=(replace(REASON, is_required=False),),
        states=(State.QUARANTINED, State.DRAINING, State.OUT, State.RESERVED, State.RETIRED),
        applicable=lambda rows: rows.filter(Q(in_service=False) | ~Q(status=Status.IN_SERVICE)),
        bulk_targets=lambda rows: rows.filter(in_service=False, status=Status.OUT_OF_SERVICE),
        do=ResourceQuerySet.return_to_service,
        done_message=ngettext_lazy(
            "%(what)s was returned to service.", "%(what)s were returned to service.", "count"
        ),
        skipped_message=_(
            "%(count)d skipped: in service, no longer there, or returned by id only (quarantined, reserved, retired)."
        ),
    ),
    Operation(
        name="drain",
        button=_("Drain"),
        title=_("Drain (take out of service after the running lease)"),
        effect=_(
            "Not leased again. A running lease is not disturbed: it ends when its holder releases it."
            " Without a duration it stays out of service until someone returns it."
        ),
        fields=(REASON, SPAN),
        is_offered=lambda resource: resource.status != Status.OUT_OF_SERVICE,
        bulk_targets=lambda rows: rows.filter(in_service=True),
        do=ResourceQuerySet.drain,
        done_message=ngettext_lazy(
            "%(what)s was taken out of service.", "%(what)s were taken out of service.", "count"
        ),
        deferred_message=ngettext_lazy(
            "%(what)s is held: it leaves service after its lease.",
            "%(what)s are held: they leave service after their leases.",
            "count",
        ),
        repeated_message=ngettext_lazy(
            "%(what)s was already draining or out of service; only its reason and end changed.",
            "%(what)s were already draining or out of service; only their reasons and ends changed.",
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
            "Programs cannot lease it. A running lease finishes first. Without a duration it stays reserved"
            " until someone returns it."
        ),
        fields=(TextField(name="name", label=_("For whom"), max_length=80, is_own_name=True), REASON, SPAN),
        do=ResourceQuerySet.reserve,
        done_message=ngettext_lazy("%(what)s was reserved.", "%(what)s were reserved.", "count"),
        deferred_message=ngettext_lazy(
            "%(what)s is held: reserved after its lease.",
            "%(what)s are held: reserved after their leases.",
            "count",
        ),
        status=Status.RESERVED,
        skipped_message=_GONE,
    ),
    Operation(
        name="acknowledge",
        button=_("Acknowledge leak"),
        title=_("Acknowledge leak (the long lease is intended)"),
        effect=_(
            "The lease does not change. The “leaked” alarm stops counting it within about five seconds; the"
            " history records who acknowledged it, and why."
        ),
        fields=(REASON,),
        states=(State.LEASED, State.DRAINING),
        is_offered=lambda resource: bool(select_open_leaks(type(resource), [(resource.pk, resource.fence)])),
        applicable=_leaks,
        do=acknowledge,
        done_message=ngettext_lazy(
            "The leak of %(what)s was acknowledged.", "The leaks of %(what)s were acknowledged.", "count"
        ),
        skipped_message=_(
            "%(count)d skipped: not reported as leaked within the last hour, or already acknowledged."
        ),
        for_current_lease=True,
    ),
    Operation(
        name="check",
        button=_("Check now"),
        title=_("Check now"),
        effect=_(
            "Each resource is leased during its check; held ones are skipped. Bad resources are"
            " quarantined; good ones that a check had quarantined return to service. Quarantines by people"
            " or programs are not changed. This page waits for the checks, up to half a minute."
        ),
        states=(State.FREE, State.COOLING, State.QUARANTINED),
        is_for=lambda model: model._meta.label in setting("CHECKS"),
        applicable=lambda rows: rows.available() | rows.quarantined().filter(reason__code=CHECK_REASON),
        do=lambda rows, actor: check_now(rows.model, list(rows.values_list("pk", flat=True)), actor),
        done_message=ngettext_lazy(
            "%(what)s was checked; see its last check for the result.",
            "%(what)s were checked; see the list for the results.",
            "count",
        ),
        skipped_message=_(
            "%(count)d skipped: held, out of service, due to a waiter, or in a quarantine not set by a check."
        ),
        max_rows=MAX_CHECKS,
    ),
)
