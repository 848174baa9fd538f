"""Rebuilds the pool every second: with the moment of its mapping, and without."""

import datetime
import random
import signal
import threading
import time
from pathlib import Path

from django.db import Error, connection

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import DispenserTask
from resourcepool.taskqueue import TaskDispenser
from tests.concurrency.evidence import Log
from tests.taskqueue.dispenser.proof.terms import GHOSTS, MARGIN, NAME, is_moving, score

EVERY = 1.0  # seconds


class Rebuilder:
    """Rebuilds until SIGTERM."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.log, self.chance = Log(path, who=-number), random.Random(f"{seed}/rebuilder {number}")
        self.dispenser, self.tasks, self.leaving = TaskDispenser(NAME), 0, threading.Event()

    def work(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self.leaving.set())
        while not self.leaving.is_set():
            try:
                self._rebuild()
            except (DatabaseUnavailable, Error):
                connection.close()
            except Exception as error:  # noqa: BLE001 (the checker decides which errors are allowed)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
            self.leaving.wait(EVERY)

    def _rebuild(self) -> None:
        rows, began = DispenserTask.objects.filter(dispenser_id=NAME), time.monotonic()
        self.tasks = self.tasks or rows.exclude(key__startswith="-").count()
        started = self.dispenser.now() - datetime.timedelta(seconds=MARGIN)
        mapping = {key: self._score(key) for key in range(self.tasks)}
        mapping |= {-key: float(self.tasks) for key in range(1, GHOSTS + 1) if self.chance.random() < 0.5}
        if self.chance.random() < 0.5:
            for key in rows.filter(state="done").values_list("key", flat=True):
                mapping.pop(int(key), None)
            told = self.dispenser.recreate_task_pool(mapping, as_of=started)
        else:
            told = self.dispenser.recreate_task_pool(mapping)
        self.log.tell("rebuilt", since=began, pk=told.retired, text=str(tuple(told)))

    def _score(self, key: int) -> float:
        return score(self.chance.randrange(self.tasks) if is_moving(key) else key, self.tasks)
