"""The periodic jobs: when each last ran, and its result."""

from dataclasses import dataclass

from django.db import connections, router

from resourcepool.jobs import Job
from resourcepool.leases import verbs
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.status.system import System, gauge

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
    """Return {name: status of the job}."""
    rows = verbs.rows_of(connections[router.db_for_write(Job)], Job).order_by("name")
    rows = rows.annotate(left=Until("busy_before"), done=Since("done_at"), failed=Since("failed_at"))
    return {
        row.name: JobStatus(row.name, row.done, row.failed, row.result, row.holder if row.left > 0 else "")
        for row in fetch_all(rows[:MAX_JOBS])
    }


SYSTEM = System(
    name="jobs",
    word="periodic_job",  # Prometheus sets a label ``job`` itself
    viewed=(Job,),
    read=lambda: jobs().values(),
    figures=(
        gauge("success_age_seconds", "Time since the last success.", "done"),
        gauge("failed", "Whether the job has failed since then.", lambda one: one.failed is not None),
    ),
)
