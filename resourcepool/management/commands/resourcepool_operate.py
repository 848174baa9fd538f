"""``manage.py resourcepool_operate``: runs the operations of the admin."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from resourcepool.management import arguments
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.operation import Applied, described
from resourcepool.resources.registry import resource_model, select_resources
from resourcepool.translation import gettext as _, gettext_lazy


class Command(OperatorCommand):
    """Runs an operation on resources of one pool: by id, by tag and field, or on all."""

    about = gettext_lazy("Runs an operation of the admin on resources, under the same name.")
    example = (
        'manage.py resourcepool_operate quarantine proxy 17 18 --reason "banned" --for 2h\n'
        'manage.py resourcepool_operate reserve proxy --tag eu --name Ann --reason "her test" --dry-run'
    )
    interrupted = gettext_lazy("completed changes were kept")

    def arguments(self) -> list[Argument]:
        titles = "; ".join(f"{name}: {operation.title}" for name, operation in OPERATIONS.items())
        operation = arg("operation", titles.replace("%", "%%"), choices=OPERATIONS, metavar="operation")
        return [
            operation,
            *self.resources(),
            *arguments.operation_arguments(OPERATIONS.values()),
            *arguments.change_arguments(),
        ]

    def resources(self) -> list[Argument]:
        """Return the arguments that select resources."""
        return [
            arg("pool", _("the pool (app.Model, or Model)")),
            arg("id", _("primary keys of resources"), nargs="*"),
            *arguments.selection_arguments(),
            flag("--all", _("the whole pool; asks for confirmation")),
        ]

    def run(self, **options: Any) -> None:
        operation, dry_run = self.operation(options), options["dry_run"]
        (model,) = arguments.pool_models(options["pool"])
        criteria = arguments.criteria(model, options["tag"], options["where"])
        if bool(options["id"] or criteria) == options["all"]:
            raise CommandError(_("select resources by ids, --tag or --where; or use --all alone"))
        rows, answered = (
            select_resources(model, options["id"], criteria),
            arguments.field_values(operation, options),
        )
        by_id, changeable = bool(options["id"]), self.changeable(operation, rows)
        targets = operation.targets(changeable, by_id=by_id)
        total = targets.count()
        listed = [{"id": row.pk, "name": str(row)} for row in targets.order_by("pk")[: options["limit"]]]
        if not options["json"]:
            lines = [f"{one_line(row['id'])}  {one_line(row['name'])}" for row in listed]
            self.show(listed, [*lines, *more_rows_note(len(lines), total)])
        if total and options["all"] and not dry_run:
            self.confirm(_("Change all %s?") % f"{total:,}", yes=options["yes"])
        parts = [] if dry_run else [changeable]
        applied = operation.apply(parts, answered, actor=actor(), found=total, by_id=by_id).or_raise()
        if total and not options["json"]:
            names = [one_line(row["name"]) for row in listed]
            for text in self.summary(applied, model, names, dry_run=dry_run):
                self.stdout.write(text)
        if applied.changed and applied.skipped:
            self.note(applied.skipped_message)
        result = {"dry_run": dry_run, "found": total, "changed": applied.changed}
        result |= self.after_change(model, rows, options)
        if options["json"]:
            self.show({**result, "resources": listed}, [])
        if not total and not rows.exists():
            raise CommandError(_("nothing to do: no such resource"))
        self.check_result(operation, rows, result)

    def operation(self, options: dict[str, Any]) -> Operation:
        """Return the operation; refuses wrong combinations of options."""
        operation, model = OPERATIONS[options["operation"]], resource_model(options["pool"])
        if not operation.is_for(model):
            names = {"pool": model._meta.label, "operation": operation.name}
            raise CommandError(_("%(pool)s does not support %(operation)s") % names)
        for field in arguments.fields_of(OPERATIONS.values()):
            if options[field.name] and field.name not in {own.name for own in operation.fields}:
                names = {"option": field.option, "operation": operation.name}
                raise CommandError(_("%(option)s cannot be combined with %(operation)s") % names)
        return operation

    def changeable(self, operation: Operation, rows: Any) -> Any:
        """Return the selected ``rows`` that this command may change."""
        return rows

    def summary(self, applied: Applied, model: Any, names: Sequence[str], *, dry_run: bool) -> list[str]:
        """Return the messages about the changed rows, or about those that a dry run found."""
        if dry_run:
            return [_("Would change %s.") % described(model, applied.found, names)]
        return applied.done_messages(model, names)

    def after_change(self, model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Hook after the change; return additions to the JSON object."""
        return {}

    def check_result(self, operation: Operation, rows: Any, result: dict[str, Any]) -> None:
        """Raise CommandError if nothing was changed."""
        if not result["found"] or not (result["changed"] or result["dry_run"]):
            skipped = result["found"] or rows.count()
            raise CommandError(_("nothing to do: %s") % (operation.skipped_message % {"count": skipped}))
