"""``manage.py resourcepool_close``: revokes running leases."""

from resourcepool.management.commands import resourcepool_operate
from resourcepool.translation import gettext_lazy


class Command(resourcepool_operate.Command):
    only = "revoke"
    about = gettext_lazy(
        "Revokes running leases: the resources are free at once, their fences go up, and their holders are"
        " notified within a third of their ttl (the next call raises LeaseLost). A holder that is using the"
        " resource at that moment is not stopped. Select leases by id, by holder or by host, or revoke all."
        " A reason is required, except with --dry-run."
    )
    example = (
        'manage.py resourcepool_close proxy 17 18 --reason "hangs since 3 am"\n'
        'manage.py resourcepool_close --host crawler3 --reason "crawler3 is gone" --dry-run\n'
        'manage.py resourcepool_close proxy --all --reason "restart of everything"'
    )
    interrupted = gettext_lazy("leases already revoked stay revoked; run again for the rest")
