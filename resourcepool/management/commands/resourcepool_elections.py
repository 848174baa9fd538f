"""``manage.py resourcepool_elections``: who leads, for how long, and how many stand by."""

from django.utils.translation import gettext_lazy

from resourcepool.management.work_commands import NamedRowsCommand
from resourcepool.status.elections import ELECTIONS


class Command(NamedRowsCommand):
    reader = ELECTIONS
    show_help = gettext_lazy("shows all elections, or one; the default")
    about = gettext_lazy(
        "Shows each election: who leads, for how long, when the term runs out unless renewed, and how many stand by."
    )
    example = "manage.py resourcepool_elections\nmanage.py resourcepool_elections show reports --watch"
