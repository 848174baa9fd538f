"""Writes protected only by ``guard``, and their evidence."""

import random
import time
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction

from resourcepool.exceptions import LeaseLost
from tests.chaos.models import Page, Step
from tests.concurrency.evidence import Log

PAUSE = 0.02  # seconds at most between the guard and the write

# Codes of MariaDB and PostgreSQL for deadlocks and for waiting too long for a lock.
CONFLICTS = {1213, 1205, 1020, "40001", "40P01", "55P03"}


def write(log: Log, chance: random.Random, held: Any) -> None:
    """Write to the page, whatever its fence, and leave a trace; errors of this own transaction are expected.

    Args:
        held: has ``pk``, ``fence`` and ``guard()``: a lease or a queue.
    """
    mark = f"{chance.getrandbits(64):x}"
    pause = chance.uniform(0, PAUSE)
    try:
        with transaction.atomic(), held.guard():
            time.sleep(pause)
            page = Page.objects.select_for_update().get(pk=held.pk)
            Page.objects.filter(pk=page.pk).update(fence=held.fence)
            Step.objects.create(page=page.pk, before=page.fence, fence=held.fence, mark=mark)
    except LeaseLost:
        log.tell("refused", pk=held.pk, fence=held.fence)
        raise
    except (DatabaseError, InterfaceError) as error:
        log.tell("deadlock" if _code(error) in CONFLICTS else "cut_short", text=str(error))
        connection.close()
    else:
        log.tell("wrote", pk=held.pk, fence=held.fence, text=mark)


def _code(error: Exception) -> object:
    return getattr(error.__cause__, "sqlstate", None) or (error.args[0] if error.args else None)
