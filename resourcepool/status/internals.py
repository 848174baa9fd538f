"""The periodic jobs, with their last runs; and the sessions left on the database servers.

A process without a session can do nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import connections, router

from resourcepool.db.inspection import inspector
from resourcepool.db.retry import retrying
from resourcepool.jobs import Job
from resourcepool.leases import verbs
from resourcepool.resources.registry import resource_models
from resourcepool.status.alarm import ABOUT_DATABASES, Alarm, AlarmKind
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.status.system import System, gauge
from resourcepool.translation import gettext as _

FEW = 0.1  # of the sessions that a server allows
MAX_JOBS = 200


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One periodic job; times in seconds.

    Attributes:
        done: since its last success; None: never.
        failed: since its last failure; None: it never failed, or has succeeded since.
        result: of the last run, in one line.
        holder: the process that runs it now; "": none.
    """

    name: str
    done: float | None
    failed: float | None
    result: str
    holder: str


def jobs() -> dict[str, JobStatus]:
    rows = verbs.rows_of(connections[router.db_for_write(Job)], Job).order_by("name")
    rows = rows.annotate(left=Until("busy_before"), done=Since("done_at"), failed=Since("failed_at"))
    return {
        row.name: JobStatus(row.name, row.done, row.failed, row.result, row.holder if row.left > 0 else "")
        for row in fetch_all(rows[:MAX_JOBS])
    }


JOBS = System(
    name="jobs",
    word="periodic_job",  # Prometheus sets a label ``job`` itself
    viewed=(Job,),
    read=lambda: jobs().values(),
    figures=(
        gauge("success_age_seconds", "Time since the last success.", "done"),
        gauge("failed", "Whether the job has failed since then.", lambda one: one.failed is not None),
    ),
)


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """The sessions of one database server.

    Attributes:
        name: the alias of the database in the settings of the project.
        sessions: open sessions, of all programs. ``most``: as many as the server allows.
    """

    name: str
    sessions: int
    most: int

    ALSO: ClassVar = ("left",)

    @property
    def left(self) -> int:
        """How many more sessions it accepts."""
        return max(0, self.most - self.sessions)


def databases() -> list[DatabaseStatus]:
    """Return the databases of all pools and jobs that limit their sessions; raises DatabaseUnavailable."""
    statuses = []
    for alias in sorted({router.db_for_write(Job), *(model.pool.using for model in resource_models())}):
        connection = connections[alias]
        if sessions := retrying(connection, inspector(connection).sessions):
            statuses.append(DatabaseStatus(alias, *sessions))
    return statuses


def database_alarms(statuses: Sequence[DatabaseStatus]) -> Iterator[Alarm]:
    """Yield an alarm for each server with less than a tenth of its sessions left."""
    for one in statuses:
        if one.left < FEW * one.most:
            text = _(
                "%(left)d of %(most)d sessions left. Once none is left, no process can connect. Stop processes that do"
                " not need theirs, or raise the limit of the server (max_connections)."
            )
            values = {"left": one.left, "most": one.most}
            yield Alarm(AlarmKind.FEW_SESSIONS, ABOUT_DATABASES % one.name, text % values)


class DatabasesSystem(System):
    """The databases; they have no page."""

    @property
    def plural(self) -> str:
        return _("databases")

    def list_of_alarm(self, kind: AlarmKind, name: str) -> tuple[Any, dict[str, str]]:
        return None, {}


DATABASES = DatabasesSystem(
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
