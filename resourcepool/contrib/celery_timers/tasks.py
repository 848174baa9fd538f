"""The Celery task that handles one timer in a worker, and the context in which a node sends it."""

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from celery import current_app, shared_task
from celery.exceptions import WorkerShutdown, WorkerTerminate

from resourcepool.contrib.celery_timers import handover
from resourcepool.hints.broker import CONNECT_TIMEOUT, broker_connection, broker_named
from resourcepool.taskqueue.timers.models import RESEND_AFTER
from resourcepool.tasks import EXPECTED, run_job


@shared_task(name="resourcepool.run_timer", ignore_result=True, throws=EXPECTED)
def run_timer(pk: int, fence: int) -> str:
    """Handle the timer that ``resourcepool_celery_timers`` handed over under this fence."""
    return run_job("run_timer", lambda: handover.handle(pk, fence, _ends_process))


def _ends_process(error: BaseException) -> bool:
    """Whether Celery ends this process with ``error``; billiard raises SystemExit in a pool process on a signal."""
    if isinstance(error, SystemExit):
        *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
        return str(frame.f_globals.get("__name__")).startswith("billiard.")
    return isinstance(error, KeyboardInterrupt | WorkerShutdown | WorkerTerminate)


@contextlib.contextmanager
def by_celery() -> Iterator[Callable[[int, int, float | None], object]]:
    """Yield a function that hands a timer over to a Celery task: ``DispatchingRunner(by_celery)``.

    A handler's ``max_runtime`` is the hard time limit of its task: a prefork worker kills the process.

    Raises:
        Exception: of the broker's client.
    """
    with broker_connection(current_app) as connection:
        connection.ensure_connection(max_retries=1, timeout=CONNECT_TIMEOUT)

        def send(pk: int, fence: int, max_runtime: float | None) -> None:
            limits: dict[str, Any] = {"expires": RESEND_AFTER, "time_limit": max_runtime, "retry": False}
            with broker_named(connection):
                current_app.send_task("resourcepool.run_timer", [pk, fence], connection=connection, **limits)

        yield send
