"""One node: handles timers, and logs its work."""

import random
import signal
import time
from pathlib import Path

from django.db import connection, transaction

from resourcepool.taskqueue import timers
from tests.chaos.models import Step
from tests.concurrency.evidence import Log
from tests.taskqueue.timers.proof.terms import GRACE, THREADS, TOPIC

LONGEST = 0.02  # seconds that a handler takes


class Worker:
    """Handles timers until SIGTERM; a node that ends its own process is replaced by the run."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.number, self.log = number, Log(path, who=number)
        self.chance = random.Random(f"{seed}/{number}")

    def work(self) -> None:
        timers.on(TOPIC)(self.handle)
        runner = timers.TimerRunner(threads=THREADS, grace=GRACE, late_rate=10_000)
        signal.signal(signal.SIGTERM, lambda *_: runner.stop())
        while not runner._is_stopping:
            try:
                runner.run()
            except Exception as error:  # noqa: BLE001 (the checker decides which errors are allowed)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                time.sleep(0.2)
        self.log.tell("left")

    def handle(self, timer: timers.RunningTimer) -> None:
        number, late = timer.payload["number"], timer.late_by.total_seconds()
        told = {"pk": number, "fence": timer.fence, "text": timer.previous_end}
        self.log.tell("began", since=late, **told)
        try:
            time.sleep(self.chance.uniform(0, LONGEST))
            with transaction.atomic(), timer.guard():
                Step._default_manager.create(page=0, before=number, fence=timer.fence, mark=str(self.number))
            self.log.tell("ended", **told)
        except BaseException:
            self.log.tell("failed", **told)
            connection.close()
            raise
