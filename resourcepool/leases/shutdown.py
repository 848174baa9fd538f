"""Releases leases when the process ends in an orderly way; a killed process's leases expire."""

import atexit
import logging
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db import connections

from resourcepool import hints
from resourcepool.database.background import background_paused, log_errors, own_connections
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.renewable import Renewable

logger = logging.getLogger(__name__)


_jobs: dict[int, list[tuple[int, Callable[[], object]]]] = {}  # {process: (order, job to run at its end)}


def at_exit(order: int, job: Callable[[], object]) -> None:
    """Run ``job`` when the interpreter ends (docs/how-it-works.md, "Endings"); a lower ``order`` comes first."""
    pid = os.getpid()
    if pid not in _jobs:
        _jobs.clear()  # the parent's: its end is not ours
        _jobs[pid] = []
        atexit.register(_end, pid)
        for name in ("multiprocessing.util", "billiard.util"):
            # Their children end with os._exit, which skips atexit, but run these finalizers first.
            if (module := sys.modules.get(name)) is not None:
                module.Finalize(None, _end, args=(pid,), exitpriority=100)
    _jobs[pid].append((order, job))


def has_begun() -> bool:
    """Tell whether this process, which has had leases, has begun to end: it releases what it held at that moment."""
    return os.getpid() not in _jobs


def _end(pid: int) -> None:
    if os.getpid() == pid:
        with background_paused():  # a ticket that is being taken is kept a moment later
            for _, job in sorted(_jobs.pop(pid, []), key=lambda each: each[0]):
                with log_errors("this was not done at the end of the process"):
                    job()
            hints.flush_at_exit()


def release_everything(leases: list[Renewable]) -> None:
    """Release all these leases, one statement per table, one try each; leases that fail expire."""
    groups: dict[Any, list[Renewable]] = defaultdict(list)
    for lease in leases:
        groups[lease.model, lease.using].append(lease)
    if not groups:
        return
    gone: set[str] = set()  # databases that do not answer: each try may take seconds
    with own_connections():
        for (model, using), group in groups.items():
            if using in gone:
                logger.warning("%d leases not released at exit, they lapse", len(group))
                continue
            for start in range(0, len(group), verbs.BATCH):
                held = [(lease.pk, lease.fence) for lease in group[start : start + verbs.BATCH]]
                cooldowns = [lease.terms.cooldown for lease in group[start : start + verbs.BATCH]]
                try:
                    if verbs.release_all(connections[using], model, held, cooldowns) == len(held):
                        for lease in group[start : start + verbs.BATCH]:
                            with log_errors("not everybody could be told that %s was released", lease):
                                lease.mark_released()
                except Exception as error:  # noqa: BLE001 (whatever it is, another database may still answer)
                    logger.warning("%d leases not released at exit, they lapse: %s", len(held), error)
                    gone.add(using)
                    break
            else:
                with log_errors("what was released waits until somebody looks"):
                    group[0].after_batch_release(using, model, [lease.pk for lease in group])


def release_on_sigterm() -> None:
    """Make SIGTERM end this process like ``sys.exit``, so that ``finally`` blocks run and leases are released.

    Call it in the main thread of a program without a handler of its own; gunicorn and Celery workers have one, and
    end in an orderly way without it. So has uvicorn, but it dies of the signal after all, and its leases expire.

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
