"""One consumer: runs the tasks, and logs its work and its term."""

import random
import signal
import time
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.taskqueue import Consumer, handler
from tests.chaos.models import Step
from tests.concurrency.evidence import Log
from tests.taskqueue.proof.terms import GRACE, STREAM, TYPE

SHORT, LONG = (0.0, 0.004), (0.3, 2.5)  # seconds that a task takes
LONG_ONES = 0.01


class Worker:
    """Consumes until SIGTERM; a consumer that ends its process is replaced by the run."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.number, self.log = number, Log(path, who=number)
        self.chance = random.Random(f"{seed}/{number}")

    def work(self) -> None:
        handler(TYPE)(self.run)
        consumer = Consumer(STREAM, grace=GRACE)
        signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
        while not consumer._is_stopping:
            try:
                consumer.look_up()
            except DatabaseUnavailable:  # only a beginning may fail so; a supervisor begins it again
                time.sleep(0.2)
                continue
            try:
                consumer.run()
            except Exception as error:  # noqa: BLE001 (the checker decides which errors are allowed)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                time.sleep(0.2)
        self.log.tell("left")

    def run(self, task: Any) -> None:
        """Log the start; write under ``guard`` without a check."""
        number, lane = task.params["number"], task.params["lane"]
        self._note("began", task, number)
        try:
            time.sleep(self.chance.uniform(*(LONG if self.chance.random() < LONG_ONES else SHORT)))
            with transaction.atomic(), task.guard():
                time.sleep(self.chance.uniform(0, 0.002))
                Step._default_manager.create(
                    page=lane, before=number, fence=task.fence, mark=str(task.lease.fence)
                )
            self._note("wrote", task, number)
        except BaseException:
            self.log.tell("failed", pk=number, fence=task.fence, text=str(task.lease.fence))
            connection.close()
            raise

    def _note(self, what: str, task: Any, number: int) -> None:
        now = time.monotonic()  # before the term is read: a term held then was held before
        task.ensure_held()
        self.log.tell(what, at=now, pk=number, fence=task.fence, text=str(task.lease.fence))
