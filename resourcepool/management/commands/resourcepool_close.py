"""``manage.py resourcepool_close``: take running leases away from their holders."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.leases.lock_holders import Locked
from resourcepool.management.arguments import (
    Argument,
    arg,
    change_arguments,
    field_values,
    flag,
    operation_arguments,
    pool_models,
)
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.management.status_report import LEASE_COLUMNS
from resourcepool.management.tables import table
from resourcepool.operations import OPERATIONS
from resourcepool.resources.registry import all_resources, parse_key
from resourcepool.status.holders import ActiveLease, active_leases, lease_counts, leased_rows, locked
from resourcepool.status.snapshots import read_each

REVOKE = OPERATIONS["revoke"]
Options = dict[str, Any]


class Command(OperatorCommand):
    about = gettext_lazy(
        "Takes running leases away: the resources are free at once, their fences go up, and their holders are told"
        " within a third of their ttl (the next call raises LeaseLost). What a holder is doing with the thing at that"
        " moment is not stopped. By id, by holder, by host, or all of them."
    )
    example = (
        'manage.py resourcepool_close proxy 17 18 --reason "hangs since 3 am"\n'
        'manage.py resourcepool_close --host crawler3 --reason "crawler3 is gone" --dry-run\n'
        'manage.py resourcepool_close proxy --all --reason "restart of everything"'
    )
    interrupted = gettext_lazy("what was closed stays closed; doing it again closes the rest")

    def arguments(self) -> list[Argument]:
        why = _("why, one line; the history keeps it; needed, except with --dry-run")
        return [
            arg("pool", _("only this pool (app.Model, or Model); needed with ids"), nargs="?"),
            arg("id", _("primary keys of resources"), nargs="*"),
            arg("--holder", _("leases of exactly this holder"), default=""),
            arg("--host", _("leases of processes on this host"), default=""),
            flag("--all", _("every running lease; asks first")),
            *operation_arguments([REVOKE], reason=why),
            *change_arguments(),
        ]

    def run(self, **options: Any) -> None:
        answered, models = field_values(REVOKE, options), pool_models(options["pool"])
        which = _which(models[0], options)
        found = lease_counts(models, **which)
        total, most = sum(found.values()), options["limit"]
        shown = [one for model in found for one in active_leases(model, **which, limit=most)][:most]
        free, gone = _not_held(models[0], which.get("pks", []))
        stuck = [*chain.from_iterable(read_each(models, lambda model: locked(model, **which)).values())]
        if not options["json"]:
            self._tell(shown, total, free, gone, stuck)
        if total and options["all"] and not options["dry_run"]:
            self.confirm(_("Close all %s?") % f"{total:,}", yes=options["yes"])
        closed, refused = (0, None) if options["dry_run"] else _close(found, which, answered)
        data = {"dry_run": options["dry_run"], "found": total, "closed": closed, "leases": shown}
        data |= {"not_held": free, "not_there": gone, "locked": stuck}
        self.show(data, [_sentence(total, closed, dry_run=options["dry_run"])] if total else [])
        if refused is not None:
            raise refused
        if not total and stuck:
            raise CommandError(_("nothing to close: no such lease is running, but rows of such are locked"))
        if not total:
            raise CommandError(_("nothing to close: no such lease is running"))

    def _tell(
        self, shown: list[ActiveLease], total: int, free: list[str], gone: list[str], stuck: list[Locked]
    ) -> None:
        if shown:
            self.show(shown, [table(shown, LEASE_COLUMNS), *more_rows_note(len(shown), total)])
        if free:
            self.note(_("not held by anybody: %s") % ", ".join(free))
        if gone:
            self.note(_("there is no such id: %s") % ", ".join(gone))
        if stuck:
            self.note(_("Ran out, but nobody gets them while their rows are locked:"))
        for one in stuck:
            self.note(one_line(localized(one), 300))


def _which(model: Any, options: Options) -> Options:
    """Return what was asked for; raises CommandError when nothing was, or all and some."""
    some = {name: options[name] for name in ("holder", "host") if options[name]}
    if options["id"]:
        some["pks"] = [parse_key(model, pk) for pk in options["id"]]
    if bool(some) == options["all"]:
        raise CommandError(_("say which leases: ids, --holder or --host; or --all and none of these"))
    return some


def _not_held(model: Any, pks: list[Any]) -> tuple[list[str], list[str]]:
    """Return those of ``pks`` that nobody holds, and those that no resource has."""
    if not pks:
        return [], []
    held = set(leased_rows(model, pks=pks).values_list("pk", flat=True))
    there = set(all_resources(model).filter(pk__in=pks).values_list("pk", flat=True))
    left = [pk for pk in pks if pk not in held]
    return [one_line(pk) for pk in left if pk in there], [one_line(pk) for pk in left if pk not in there]


def _close(models: Iterable[Any], which: Options, answered: Options) -> tuple[int, RowLocked | None]:
    """Return how many leases of these pools were closed, and the error if a row was locked: all others are closed."""
    closed, locked = 0, None
    for model in models:
        try:
            closed += REVOKE.do(leased_rows(model, **which), actor=actor(), **answered)
        except RowLocked as error:
            closed, locked = closed + error.done, error
    return closed, locked


def _sentence(total: int, closed: int, *, dry_run: bool) -> str:
    if dry_run:
        return ngettext("Would close %s lease.", "Would close %s leases.", total) % f"{total:,}"
    said = ngettext("Closed %s lease.", "Closed %s leases.", closed) % f"{closed:,}"
    told = _("Holders that are alive are told within a third of their ttl.")
    return f"{said} {told}" if closed else said
