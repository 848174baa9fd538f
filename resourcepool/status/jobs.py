"""When the periodic jobs were done last, and what came of them."""

from dataclasses import dataclass

from django.db import connections, router

from resourcepool.database.retry import retrying
from resourcepool.dialect import MicrosUntil
from resourcepool.jobs.models import Job
from resourcepool.leases import verbs
from resourcepool.status.durations import ago

MOST = 200


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One kind of periodic work; times in seconds.

    Attributes:
        done: since it was done last; None: never.
        failed: since it failed; None: it has been done since, or never failed.
        result: what came of it, in one line.
        holder: who is just doing it; "" when nobody.
    """

    name: str
    done: float | None
    failed: float | None
    result: str
    holder: str


def jobs() -> dict[str, JobStatus]:
    """Return {name: how the job of this name stands}."""
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
        for row in retrying(connection, lambda: list(rows.order_by("name")[:MOST]))
    }
