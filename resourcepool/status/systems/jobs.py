"""What the metrics show of periodic jobs."""

from resourcepool.jobs import Job
from resourcepool.status.jobs import jobs
from resourcepool.status.system import System, gauge

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
