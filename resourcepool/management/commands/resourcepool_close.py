"""``manage.py resourcepool_close``: revokes running leases."""

from itertools import chain
from typing import Any

from django.core.management.base import CommandError

from resourcepool.db.transactions import Locked
from resourcepool.events import localized
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
from resourcepool.management.commands.resourcepool_status import LEASE_COLUMNS
from resourcepool.management.layout import more_rows_note, one_line, table
from resourcepool.operations import OPERATIONS
from resourcepool.resources.registry import all_resources
from resourcepool.resources.selectors import parse_key
from resourcepool.status.resources.holders import ActiveLease, active_leases, lease_counts, leased_rows, locked
from resourcepool.status.snapshots import read_each
from resourcepool.translation import gettext as _, gettext_lazy, ngettext

REVOKE = OPERATIONS["revoke"]
Options = dict[str, Any]


class Command(OperatorCommand):
    about = gettext_lazy(
        "Revokes running leases: the resources are free at once, their fences go up, and their holders are"
        " notified within a third of their ttl (the next call raises LeaseLost). A holder that is using the"
        " resource at that moment is not stopped. Select leases by id, by holder or by host, or revoke all."
    )
    example = (
        'manage.py resourcepool_close proxy 17 18 --reason "hangs since 3 am"\n'
        'manage.py resourcepool_close --host crawler3 --reason "crawler3 is gone" --dry-run\n'
        'manage.py resourcepool_close proxy --all --reason "restart of everything"'
    )
    interrupted = gettext_lazy("leases already revoked stay revoked; run again for the rest")

    def arguments(self) -> list[Argument]:
        why = _("reason, one line, kept in the history; required, except with --dry-run")
        return [
            arg("pool", _("only this pool (app.Model, or Model); required with ids"), nargs="?"),
            arg("id", _("primary keys of resources"), nargs="*"),
            arg("--holder", _("leases of exactly this holder"), default=""),
            arg("--host", _("leases of processes on this host"), default=""),
            flag("--all", _("all running leases; asks for confirmation")),
            *operation_arguments([REVOKE], reason=why),
            *change_arguments(),
        ]

    def run(self, **options: Any) -> None:
        answered, models = field_values(REVOKE, options), pool_models(options["pool"])
        which = _which(models[0], options)
        by_model = lease_counts(models, **which)
        total, most = sum(by_model.values()), options["limit"]
        leases = [lease for model in by_model for lease in active_leases(model, **which, limit=most)][:most]
        free, missing = _not_held(models[0], which.get("pks", []))
        locked_leases = [*chain.from_iterable(read_each(models, lambda model: locked(model, **which)).values())]
        if not options["json"]:
            self._show_selection(leases, total, free, missing, locked_leases)
        if total and options["all"] and not options["dry_run"]:
            self.confirm(_("Revoke all %s?") % f"{total:,}", yes=options["yes"])
        parts = [] if options["dry_run"] else [leased_rows(model, **which) for model in by_model]
        applied = REVOKE.apply(parts, answered, actor=actor(), found=total).or_raise(even_if_locked=False)
        data = {"dry_run": options["dry_run"], "found": total, "closed": applied.changed, "leases": leases}
        data |= {"not_held": free, "not_there": missing, "locked": locked_leases}
        self.show(data, [_sentence(total, applied.changed, dry_run=options["dry_run"])] if total else [])
        applied.or_raise()
        if not total and locked_leases:
            raise CommandError(
                _("nothing to revoke: no matching lease is active, but some matching rows are locked")
            )
        if not total:
            raise CommandError(_("nothing to revoke: no matching lease is active"))

    def _show_selection(
        self,
        leases: list[ActiveLease],
        total: int,
        free: list[str],
        missing: list[str],
        locked_leases: list[Locked],
    ) -> None:
        if leases:
            self.show(leases, [table(leases, LEASE_COLUMNS), *more_rows_note(len(leases), total)])
        if free:
            self.note(_("not leased: %s") % ", ".join(free))
        if missing:
            self.note(_("no such id: %s") % ", ".join(missing))
        if locked_leases:
            self.note(_("Expired, but not leased again while their rows are locked:"))
        for lease in locked_leases:
            self.note(one_line(localized(lease), 300))


def _which(model: Any, options: Options) -> Options:
    """Return the selection; raises CommandError if it is empty, or combined with --all."""
    chosen = {name: options[name] for name in ("holder", "host") if options[name]}
    if options["id"]:
        chosen["pks"] = [parse_key(model, pk) for pk in options["id"]]
    if bool(chosen) == options["all"]:
        raise CommandError(_("select leases by ids, --holder or --host; or use --all alone"))
    return chosen


def _not_held(model: Any, pks: list[Any]) -> tuple[list[str], list[str]]:
    """Return those of ``pks`` that are not held, and those that do not exist."""
    if not pks:
        return [], []
    held = set(leased_rows(model, pks=pks).values_list("pk", flat=True))
    existing = set(all_resources(model).filter(pk__in=pks).values_list("pk", flat=True))
    not_held = [pk for pk in pks if pk not in held]
    return [one_line(pk) for pk in not_held if pk in existing], [
        one_line(pk) for pk in not_held if pk not in existing
    ]


def _sentence(total: int, closed: int, *, dry_run: bool) -> str:
    if dry_run:
        return ngettext("Would revoke %s lease.", "Would revoke %s leases.", total) % f"{total:,}"
    revoked = ngettext("Revoked %s lease.", "Revoked %s leases.", closed) % f"{closed:,}"
    notice = _("Running holders are notified within a third of their ttl.")
    return f"{revoked} {notice}" if closed else revoked
