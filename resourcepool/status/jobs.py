"""The last runs of the periodic jobs, and their results."""

from dataclasses import dataclass

from django.db import connections, router

from resourcepool.dialect import MicrosUntil
from resourcepool.jobs import Job
from resourcepool.leases import verbs
from resourcepool.status.durations import ago
from resourcepool.status.reading import fetched

MOST = 200


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One kind of periodic work; times in seconds.

    Attributes:
        done: since its last success; None: never.
        failed: since it failed; None: it has succeeded since, or never failed.
        result: of the last run, in one line.
        holder: the process that is doing it now; "" when none is.
    """

    name: str
    done: float | None
    failed: float | None
    result: str
    holder: str


def jobs() -> dict[str, JobStatus]:
    """Return {name: state of the job}."""
    connection = connections[router.db_for_read(Job)]
    rows = verbs.rows_of(connection, Job).annotate(
        left=MicrosUntil("busy_before"), done=MicrosUntil("done_at"), failed=MicrosUntil("failed_at")
    )
    return {
        row.name: JobStatus(
            name=row.name,
            done=ago(row.done),
            failed=ago(row.failed),
            result=row.result,
            holder=row.holder if row.left > 0 else "",
        )
        for row in fetched(rows.order_by("name")[:MOST])
    }
