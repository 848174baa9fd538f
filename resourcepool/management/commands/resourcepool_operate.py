"""``manage.py resourcepool_operate``: every operation of the admin, from a shell."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management import arguments
from resourcepool.management.operation import OperationCommand
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.registry import resource_model


class Command(OperationCommand):
    about = gettext_lazy("Does to resources what the admin can do to them, under the same names.")
    example = (
        'manage.py resourcepool_operate quarantine proxy 17 18 --reason "banned" --for 2h\n'
        'manage.py resourcepool_operate reserve proxy --tag eu --name Ann --reason "her test" --dry-run'
    )
    interrupted = gettext_lazy("what was changed stays so")

    def add_arguments(self, parser: CommandParser) -> None:
        titles = "; ".join(f"{name}: {one.title}" for name, one in OPERATIONS.items())
        parser.add_argument(
            "operation", choices=OPERATIONS, metavar="operation", help=titles.replace("%", "%%")
        )
        self.add_resources(parser)
        arguments.add_fields(parser, OPERATIONS.values())
        arguments.add_dry_run(parser)

    def operation(self, options: dict[str, Any]) -> Operation:
        """See ``OperationCommand``."""
        operation, model = OPERATIONS[options["operation"]], resource_model(options["pool"])
        if not operation.is_for(model):
            wrong = {"pool": model._meta.label, "operation": operation.name}
            raise CommandError(_("%(operation)s cannot be done to %(pool)s") % wrong)
        for field in arguments.fields_of(OPERATIONS.values()):
            if options[field.name] and field.name not in {one.name for one in operation.fields}:
                does_not_fit = {"option": field.option, "operation": operation.name}
                raise CommandError(_("%(option)s does not go together with %(operation)s") % does_not_fit)
        return operation
