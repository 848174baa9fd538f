"""What the surfaces show of the sessions of databases."""

from typing import Any

from resourcepool.jobs import Job
from resourcepool.status.alarm import ABOUT_DATABASES, AlarmKind
from resourcepool.status.databases import database_alarms, databases
from resourcepool.status.system import System, gauge
from resourcepool.translation import gettext as _


class DatabasesSystem(System):
    """The databases; they have no page."""

    @property
    def plural(self) -> str:
        """See ``System``."""
        return _("databases")

    def list_of_alarm(self, kind: AlarmKind, name: str) -> tuple[Any, dict[str, str]]:
        """See ``System``."""
        return None, {}


SYSTEM = DatabasesSystem(
    name="databases",
    word="database",
    viewed=(Job,),
    read=databases,
    figures=(
        gauge("sessions", "Open sessions of the database server, of all programs.", "sessions"),
        gauge("sessions_left", "Sessions that it accepts besides.", "left"),
    ),
    alarms=lambda statuses, limits: database_alarms(statuses),
    subject=ABOUT_DATABASES,
)
