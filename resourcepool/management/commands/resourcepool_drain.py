"""``manage.py resourcepool_drain``: takes resources out of service after their leases, or returns them."""

from typing import Any

from resourcepool.management.arguments import Argument, flag
from resourcepool.management.commands import resourcepool_operate
from resourcepool.translation import gettext as _, gettext_lazy


class Command(resourcepool_operate.Command):
    only = "drain"
    about = gettext_lazy(
        "Takes resources out of service: free ones at once, held ones when their lease ends; no lease is"
        " disturbed. With --for, they return to service by themselves after this time. Resources that are"
        " already out of service get the new reason and end if they are given by id. With --back, returns"
        " resources to service; quarantined, reserved and retired ones only by id. A reason is required,"
        " except with --back and --dry-run."
    )
    example = (
        'manage.py resourcepool_drain proxy 17 18 --reason "new cable" --for 2h\n'
        'manage.py resourcepool_drain proxy --tag eu --where port=3128 --reason "moving"\n'
        "manage.py resourcepool_drain proxy --tag eu --back"
    )
    interrupted = gettext_lazy("completed changes were kept; no lease was disturbed")

    def arguments(self) -> list[Argument]:
        return [*super().arguments(), flag("--back", _("return to service"))]

    def operation_name(self, options: dict[str, Any]) -> str:
        return "return_to_service" if options["back"] else "drain"
