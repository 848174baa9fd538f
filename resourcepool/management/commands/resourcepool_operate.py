"""``manage.py resourcepool_operate``: every operation of the admin, from a shell."""

from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management import arguments
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import more, plain
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.registry import chosen, resource_model


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
        return [which, *self.resources(), *arguments.asked(OPERATIONS.values()), *arguments.changing()]

    def resources(self) -> list[Argument]:
        """Return the arguments that select resources."""
        return [
            arg("pool", _("the pool (app.Model, or Model)")),
            arg("id", _("primary keys of resources"), nargs="*"),
            *arguments.selection(),
            flag("--all", _("the whole pool; asks first")),
        ]

    def run(self, **options: Any) -> None:
        operation, dry_run = self.operation(options), options["dry_run"]
        (model,) = arguments.pools(options["pool"])
        wishes = arguments.wishes(model, options["tag"], options["where"])
        if bool(options["id"] or wishes) == options["all"]:
            raise CommandError(_("say which resources: ids, --tag or --where; or --all and none of these"))
        rows, answered = chosen(model, options["id"], wishes), arguments.entered(operation, options)
        meant = self.meant(operation, rows, by_id=bool(options["id"]))
        total = meant.count()
        listed = [{"id": row.pk, "name": str(row)} for row in meant.order_by("pk")[: options["limit"]]]
        if not options["json"]:
            lines = [f"{plain(one['id'])}  {plain(one['name'])}" for one in listed]
            self.show(listed, [*lines, *more(len(lines), total)])
        if total and options["all"] and not dry_run:
            self.ask(_("Change all %s?") % f"{total:,}", yes=options["yes"])
        held = meant.held().count() if operation.later else 0
        changed = operation.do(meant, actor=actor(), **answered) if total and not dry_run else 0
        if total and not options["json"]:
            count = total if dry_run else changed
            if said := self.said(operation, count, held, dry_run=dry_run):
                self.stdout.write(said)
        if 0 < changed < total:
            self.note(operation.otherwise % {"count": total - changed})
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

    def meant(self, operation: Operation, rows: Any, *, by_id: bool) -> Any:
        """Return those of ``rows`` to which it is done."""
        return operation.meant(rows, by_id=by_id)

    def said(self, operation: Operation, count: int, held: int, *, dry_run: bool) -> str:
        """Return what is said of the ``count`` that were changed, of which ``held`` were held."""
        if dry_run:
            return _("Would change %s.") % f"{count:,}"
        held = min(held, count)
        parts = [(operation.done, count - held), (operation.later, held)]
        return "\n".join(str(text % {"count": number}) for text, number in parts if number)

    def afterwards(self, model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Do more after the change; return what to add to the JSON object."""
        return {}

    def judge(self, operation: Operation, rows: Any, found: dict[str, Any]) -> None:
        """Raise CommandError if nothing was changed."""
        if not found["found"] or not (found["changed"] or found["dry_run"]):
            left = found["found"] or rows.count()
            raise CommandError(_("nothing to do: %s") % (operation.otherwise % {"count": left}))
