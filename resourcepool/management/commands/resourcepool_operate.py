"""``manage.py resourcepool_operate``: runs the operations of the admin."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from django.core.management.base import CommandError
from django.db import connections

from resourcepool.db.retry import retrying
from resourcepool.events import localized
from resourcepool.management import arguments
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import FittedTable, more_rows_note, one_line
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.operation import Applied, by_name, described
from resourcepool.resources.registry import select_resources
from resourcepool.status.registry import named_systems
from resourcepool.status.resources.holders import last_leased_by, locked
from resourcepool.status.snapshots import read_each
from resourcepool.status.system import NamedSystem, text
from resourcepool.translation import gettext as _, gettext_lazy

COLUMNS = (
    text(gettext_lazy("id"), "pk"),
    text(gettext_lazy("resource"), str),
    text(gettext_lazy("holder"), "holder"),
)


class Command(OperatorCommand):
    """Runs an operation on resources: by id, by tag and field, by holder or host, or on all."""

    about = gettext_lazy("Runs an operation of the admin on resources, under the same name.")
    example = (
        'manage.py resourcepool_operate quarantine proxy 17 18 --reason "banned" --for 2h\n'
        'manage.py resourcepool_operate reserve proxy --tag eu --name Ann --reason "her test" --dry-run'
    )
    interrupted = gettext_lazy("completed changes were kept")
    only: str | None = None  # the operation of a command that has just one

    def arguments(self) -> list[Argument]:
        known = {**of_systems(), **OPERATIONS}
        titles = "; ".join(f"{name}: {operation.title}" for name, operation in known.items())
        which = arg("operation", titles.replace("%", "%%"), choices=known, metavar="operation")
        return [
            *([] if self.only else [which]),
            arg("pool", _("only this pool (app.Model, or Model), or a system; required with ids"), nargs="?"),
            arg("id", _("primary keys of resources, or names"), nargs="*"),
            *arguments.selection_arguments(),
            arg("--holder", _("only leases of exactly this holder"), default=""),
            arg("--host", _("only leases of processes on this host"), default=""),
            flag("--all", _("the whole pool; asks for confirmation")),
            *arguments.operation_arguments([OPERATIONS[self.only]] if self.only else known.values()),
            *arguments.change_arguments(),
        ]

    def operation_name(self, options: dict[str, Any]) -> str:
        return self.only or str(options["operation"])

    def run(self, **options: Any) -> None:
        system = named_systems().get(str(options["pool"]).lower())
        if system and self.operation_name(options) in of_systems(system):
            self._run_on_system(system, **options)
            return
        operation, by_id = _operation(self.operation_name(options), options), bool(options["id"])
        answers, chosen = arguments.field_values(operation, options), _chosen(operation, options)
        is_leased = bool(options["holder"] or options["host"])
        active = {model: rows.held() if is_leased else rows for model, rows in chosen.items()}
        targets = {model: operation.targets(rows, by_id=by_id) for model, rows in active.items()}
        counts = read_each(targets, lambda model: retrying(connections[model.pool.using], targets[model].count))
        # Only pools with a table.
        chosen, active = ({model: rows[model] for model in counts} for rows in (chosen, active))
        found, limit, dry_run = sum(counts.values()), options["limit"], options["dry_run"]
        listed = [row for model in counts for row in targets[model].order_by("pk")[:limit]][:limit]
        if listed and not self.as_json:
            self.show(listed, [FittedTable(listed, COLUMNS), *more_rows_note(len(listed), found)])
        if found and options["all"] and not dry_run:
            self.confirm(_("Change all %s?") % f"{found:,}", yes=options["yes"])
        applied = {
            model: operation.apply(
                [] if dry_run else [active[model]], answers, actor=actor(), found=count, by_id=by_id
            ).or_raise(even_if_locked=False)
            for model, count in counts.items()
        }
        if not self.as_json:
            self._show_result(applied, listed, dry_run=dry_run)
        result = {"dry_run": dry_run, "found": found, "changed": sum(one.changed for one in applied.values())}
        rows = [{"id": row.pk, "name": str(row), "holder": row.holder} for row in listed]
        if self.as_json:
            self.show({**result, "resources": rows}, [])
        for one in applied.values():
            one.or_raise()
        if not result["changed"] and not (found and dry_run):
            self._refuse(operation, chosen, found)

    def _run_on_system(self, system: NamedSystem, **options: Any) -> None:
        """Run an operation of a system on its rows of these names."""
        names, dry_run = options["id"], options["dry_run"]
        operation = of_systems(system)[self.operation_name(options)]
        _refuse_options_of_others(operation, options)
        if not names or any(options[name] for name in ("tag", "where", "holder", "host", "all")):
            raise CommandError(_("select rows of %(system)s by name") % {"system": system.plural})
        system.reader.named(*names)
        rows, answers = system.reader.rows.filter(pk__in=names), arguments.field_values(operation, options)
        parts, found = [] if dry_run else [rows], len(set(names))
        applied = operation.apply(parts, answers, actor=actor(), found=found).or_raise()
        if self.as_json:
            self.show({"dry_run": dry_run, "found": found, "changed": applied.changed, "names": names}, [])
        else:
            self._show_result({system.reader.model: applied}, list(rows), dry_run=dry_run)
        if not (applied.changed or dry_run):
            raise CommandError(_("nothing to do: %s") % (operation.skipped_message % {"count": found}))

    def _show_result(self, applied: Mapping[Any, Applied], listed: Sequence[Any], *, dry_run: bool) -> None:
        for model, result in applied.items():
            names = [one_line(row) for row in listed if type(row) is model]
            lines = result.done_messages(model, names)
            if dry_run and result.found:
                lines = [_("Would change %s.") % described(model, result.found, names)]
            for line in lines:
                self.stdout.write(line)
            if result.changed and result.skipped:
                self.note(result.skipped_message)

    def _refuse(self, operation: Operation, chosen: Mapping[Any, Any], found: int) -> NoReturn:
        """Say why nothing was changed; ``chosen``: {model: the selected rows}."""
        for rows in chosen.values():
            for lease in locked(rows):
                self.note(one_line(localized(lease), 300))
        if not (count := found or sum(rows.count() for rows in chosen.values())):
            raise CommandError(_("nothing to do: no such resource"))
        raise CommandError(_("nothing to do: %s") % (operation.skipped_message % {"count": count}))


def of_systems(*systems: NamedSystem) -> dict[str, Operation]:
    """Return {name: operation} of these systems with rows known by name, or of all."""
    return by_name(*(each for system in systems or named_systems().values() for each in system.operations))


def _operation(name: str, options: dict[str, Any]) -> Operation:
    """Return the operation on resources; raises CommandError for one of systems alone, or for options of others."""
    if name not in OPERATIONS:
        words = ", ".join(word for word, system in named_systems().items() if name in of_systems(system))
        raise CommandError(_("%(operation)s needs a system: %(names)s") % {"operation": name, "names": words})
    operation = OPERATIONS[name]
    _refuse_options_of_others(operation, options)
    return operation


def _refuse_options_of_others(operation: Operation, options: dict[str, Any]) -> None:
    for field in arguments.fields_of([*of_systems().values(), *OPERATIONS.values()]):
        if options.get(field.name) and field.name not in {own.name for own in operation.fields}:
            names = {"option": field.option, "operation": operation.name}
            raise CommandError(_("%(option)s cannot be combined with %(operation)s") % names)


def _chosen(operation: Operation, options: dict[str, Any]) -> dict[Any, Any]:
    """Return {model: the selected rows}; raises CommandError without a selection, or with one and --all."""
    ids, holder, host = options["id"], options["holder"], options["host"]
    if bool(ids or options["tag"] or options["where"] or holder or host) == options["all"]:
        text = _("select resources by ids, --tag, --where, --holder or --host; or use --all alone")
        raise CommandError(text)
    chosen, models = {}, arguments.pool_models(options["pool"])
    for model in models:
        if operation.is_for(model):
            rows = select_resources(model, ids, arguments.criteria(model, options["tag"], options["where"]))
            chosen[model] = last_leased_by(rows, holder, host)
    if not chosen:
        names = {"pool": ", ".join(model._meta.label for model in models), "operation": operation.name}
        raise CommandError(_("%(pool)s does not support %(operation)s") % names)
    return chosen
