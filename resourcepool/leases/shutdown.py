"""Releases leases when the process exits normally; a killed process's leases expire."""

import atexit
import logging
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections

from resourcepool import hints
from resourcepool.db.background import background_paused, log_errors, own_connections
from resourcepool.db.rows import batched
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs

logger = logging.getLogger(__name__)


_jobs: dict[int, list[tuple[int, Callable[[], object]]]] = {}  # {process: (order, job to run at exit)}


def at_exit(order: int, job: Callable[[], object]) -> None:
    """Run ``job`` at exit (docs/explanation/how-it-works.md, "How leases end"); lower ``order`` first."""
    pid = os.getpid()
    if pid not in _jobs:
        _jobs.clear()  # the parent's
        _jobs[pid] = []
        atexit.register(_end, pid)
        for name in ("multiprocessing.util", "billiard.util"):
            # Their children end with os._exit, which skips atexit but not these finalizers.
            if (module := sys.modules.get(name)) is not None:
                module.Finalize(None, _end, args=(pid,), exitpriority=100)
    _jobs[pid].append((order, job))


def has_begun() -> bool:
    """Whether this process, which has had leases, has begun to exit and release them."""
    return os.getpid() not in _jobs


def _end(pid: int) -> None:
    if os.getpid() == pid:
        with background_paused():  # so that a claim under way finishes first
            for _, job in sorted(_jobs.pop(pid, []), key=lambda each: each[0]):
                with log_errors("failed at the end of the process"):
                    job()
            hints.flush_at_exit()


def release_everything(leases: Sequence[Any]) -> None:
    """Release these leases, one statement per table and batch, without retries; leases that fail expire."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for lease in leases:
        groups[lease.model, lease.using].append(lease)
    if not groups:
        return
    unavailable: set[str] = set()  # each further attempt on these databases would take seconds
    with own_connections():
        for (model, using), group in groups.items():
            if using in unavailable:
                logger.warning("%d leases not released at exit; they will expire", len(group))
                continue
            for batch in batched(group, verbs.BATCH):
                held = [(lease.pk, lease.fence) for lease in batch]
                cooldowns = [lease._terms.cooldown for lease in batch]
                try:
                    if verbs.release_all(connections[using], model, held, cooldowns) == len(held):
                        for lease in batch:
                            with log_errors("could not report to every receiver that %s was released", lease):
                                lease._mark_released()
                except Exception as error:  # noqa: BLE001 (another database may still answer)
                    logger.warning("%d leases not released at exit; they will expire: %s", len(held), error)
                    unavailable.add(using)
                    break
            else:
                if (waiters := group[0]._next_in_line) is not None:
                    waiters.assign_released(using, model, [lease.pk for lease in group])


def release_on_sigterm() -> None:
    """Make SIGTERM end this process like ``sys.exit``, so that ``finally`` blocks run and leases are released.

    Call it in the main thread of a program without its own handler. gunicorn and Celery workers have one and exit
    normally. uvicorn has one, too, but ends by the signal after all, so its leases expire.

    Raises:
        BadOption: not called in the main thread.
    """
    previous = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the clean-up
        if callable(previous) and previous is not signal.default_int_handler:
            previous(number, frame)
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        raise BadOption(
            "thread", threading.current_thread().name, because="call release_on_sigterm() in the main thread"
        )
    signal.signal(signal.SIGTERM, end)
