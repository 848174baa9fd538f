"""``manage.py resourcepool_elections``: shows leaders and standbys."""

from resourcepool.management.work_commands import NamedRowsCommand
from resourcepool.status.elections import SYSTEM
from resourcepool.translation import gettext_lazy


class Command(NamedRowsCommand):
    system = SYSTEM
    show_help = gettext_lazy("show all elections, or one; the default")
    about = gettext_lazy(
        "Shows each election: its leader, for how long it has led, when its term expires unless renewed,"
        " and the number of standbys."
    )
    example = "manage.py resourcepool_elections\nmanage.py resourcepool_elections show reports --watch"
