"""``manage.py resourcepool_operate``: every operation of the admin, from a shell."""

from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management import arguments
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.registry import resource_model, select_resources


class Command(OperatorCommand):
    """Does an operation to resources of one pool: by id, by tag and field, or to all of them."""

    about = gettext_lazy("Does to resources what the admin can do to them, under the same names.")
    example = (
        'manage.py resourcepool_operate quarantine proxy 17 18 --reason "banned" --for 2h\n'
        'manage.py resourcepool_operate reserve proxy --tag eu --name Ann --reason "her test" --dry-run'
    )
    interrupted = gettext_lazy("what was changed stays so")

    def arguments(self) -> list[Argument]:
        titles = "; ".join(f"{name}: {one.title}" for name, one in OPERATIONS.items())
        which = arg("operation", titles.replace("%", "%%"), choices=OPERATIONS, metavar="operation")
        return [
            which,
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
            flag("--all", _("the whole pool; asks first")),
        ]

    def run(self, **options: Any) -> None:
        operation, dry_run = self.operation(options), options["dry_run"]
        (model,) = arguments.pool_models(options["pool"])
        criteria = arguments.criteria(model, options["tag"], options["where"])
        if bool(options["id"] or criteria) == options["all"]:
            raise CommandError(_("say which resources: ids, --tag or --where; or --all and none of these"))
        rows, answered = (
            select_resources(model, options["id"], criteria),
            arguments.field_values(operation, options),
        )
        targets = self.targets(operation, rows, by_id=bool(options["id"]))
        total = targets.count()
        listed = [{"id": row.pk, "name": str(row)} for row in targets.order_by("pk")[: options["limit"]]]
        if not options["json"]:
            lines = [f"{one_line(one['id'])}  {one_line(one['name'])}" for one in listed]
            self.show(listed, [*lines, *more_rows_note(len(lines), total)])
        if total and options["all"] and not dry_run:
            self.confirm(_("Change all %s?") % f"{total:,}", yes=options["yes"])
        held = targets.held().count() if operation.deferred_message else 0
        changed = operation.do(targets, actor=actor(), **answered) if total and not dry_run else 0
        if total and not options["json"]:
            count = total if dry_run else changed
            if said := self.said(operation, count, held, dry_run=dry_run):
                self.stdout.write(said)
        if 0 < changed < total:
            self.note(operation.skipped_message % {"count": total - changed})
        found = {"dry_run": dry_run, "found": total, "changed": changed}
        found |= self.afterwards(model, rows, options)
        if options["json"]:
            self.show({**found, "resources": listed}, [])
        if not total and not rows.exists():
            raise CommandError(_("nothing to do: there is no such resource"))
        self.judge(operation, rows, found)

    def operation(self, options: dict[str, Any]) -> Operation:
        """Return what is to be done; refuses options that do not go together."""
        operation, model = OPERATIONS[options["operation"]], resource_model(options["pool"])
        if not operation.is_for(model):
            wrong = {"pool": model._meta.label, "operation": operation.name}
            raise CommandError(_("%(operation)s cannot be done to %(pool)s") % wrong)
        for field in arguments.fields_of(OPERATIONS.values()):
            if options[field.name] and field.name not in {one.name for one in operation.fields}:
                does_not_fit = {"option": field.option, "operation": operation.name}
                raise CommandError(_("%(option)s does not go together with %(operation)s") % does_not_fit)
        return operation

    def targets(self, operation: Operation, rows: Any, *, by_id: bool) -> Any:
        """Return those of ``rows`` to which it is done."""
        return operation.targets(rows, by_id=by_id)

    def said(self, operation: Operation, count: int, held: int, *, dry_run: bool) -> str:
        """Return what is said of the ``count`` that were changed, of which ``held`` were held."""
        if dry_run:
            return _("Would change %s.") % f"{count:,}"
        held = min(held, count)
        parts = [(operation.done_message, count - held), (operation.deferred_message, held)]
        return "\n".join(str(text % {"count": number}) for text, number in parts if number)

    def afterwards(self, model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Do more after the change; return what to add to the JSON object."""
        return {}

    def judge(self, operation: Operation, rows: Any, found: dict[str, Any]) -> None:
        """Raise CommandError if nothing was changed."""
        if not found["found"] or not (found["changed"] or found["dry_run"]):
            left = found["found"] or rows.count()
            raise CommandError(_("nothing to do: %s") % (operation.skipped_message % {"count": left}))
