"""``manage.py resourcepool_show``: the rows of any system by name, including systems of other apps."""

from collections.abc import Iterator

from resourcepool.management.subcommands import CommandGroup, Subcommand
from resourcepool.management.work_commands import show
from resourcepool.status.registry import named_systems
from resourcepool.translation import gettext as _, gettext_lazy


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows the rows of a system, and why nothing happens there; also of systems of other apps."
    )
    example = "manage.py resourcepool_show elections\nmanage.py resourcepool_show streams oracle --watch 5"

    def subcommands(self) -> Iterator[Subcommand]:
        for system in named_systems().values():
            yield show(system, system.name, _("shows all of them, or one"))
