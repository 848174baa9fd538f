"""One worker: gets tasks, finishes them, and logs the results."""

import random
import signal
import time
from pathlib import Path
from typing import Any

from django.db import Error, connection, transaction

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import DispenserTask
from resourcepool.taskqueue import Assigned, Done, TaskDispenser
from resourcepool.taskqueue.dispenser import statements
from tests.chaos.models import Step
from tests.concurrency.evidence import Log
from tests.taskqueue.dispenser.proof.terms import MOST, NAME, TTL, TWINS

SHORT, LONG = (0.0, 0.01), (0.5, 2 * TTL)  # seconds that a bucket takes
LONG_ONES = 0.003


class Worker:
    """Works until SIGTERM. Every third one has the same name as others."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.log, self.chance = Log(path, who=number), random.Random(f"{seed}/{number}")
        self.name = f"worker-{number}" if number % 3 else TWINS
        self.dispenser = TaskDispenser(NAME, bucket_ttl=TTL)
        self.limit, self.asked_at, self.is_leaving = 0, 0.0, False

    def work(self) -> None:
        signal.signal(signal.SIGTERM, self._leave)
        self._count_inside()
        while not self.is_leaving:
            try:
                self._turn()
            except DatabaseUnavailable:
                self.log.tell("unavailable")
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 (the checker decides which errors are allowed)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                connection.close()
                time.sleep(0.2)
        self.log.tell("left")

    def _leave(self, *_: Any) -> None:
        self.is_leaving = True

    def _count_inside(self) -> None:
        """Let every transaction that puts tasks into a bucket count the tasks of the bucket at its end."""
        take = statements.take

        def counted(connection: Any, bucket: int, rows: Any) -> Any:
            taken = take(connection, bucket, rows)
            held = DispenserTask.objects.filter(bucket_id=bucket, state="assigned").count()
            self.log.tell("holds", pk=bucket, fence=held, text=str(self.limit))
            return taken

        statements.take = counted

    def _turn(self) -> None:
        self.limit = MOST if self.chance.random() < 0.9 else self.chance.randint(0, MOST)
        if not self.asked_at:  # the first try; later ones may return the result of a failed one
            self.asked_at = time.monotonic()
            self.log.tell("asked", at=self.asked_at)
        told = self.dispenser.assign_tasks(self.limit, self.name)
        self.log.tell("told", since=self.asked_at, fence=self.limit, text=f"{self.name} {_listed(told)}")
        self.asked_at = 0.0
        if told != sorted(told, key=lambda one: one.score) or len({one.key for one in told}) < len(told):
            self.log.tell("unexpected", text=f"not in order: {_listed(told)}")
        time.sleep(self.chance.uniform(*(LONG if self.chance.random() < LONG_ONES else SHORT)))
        if not told:
            return
        if self.chance.random() < 0.05:
            self.dispenser.touch(self.name)
            self.dispenser.give_back(self.name, told[len(told) // 2 :])
        self._finish(told if self.chance.random() < 0.8 else told[: self.chance.randint(1, len(told))])

    def _finish(self, tasks: list[Assigned]) -> None:
        if self.name == TWINS or self.chance.random() < 0.3:
            said = self.dispenser.tasks_done(self.name, tasks)
        else:
            try:
                said = self._finish_inside(tasks)
            except Error:  # also of a commit, which may have succeeded
                connection.close()
                return
        mine = [task for task in tasks if said[task.key] == Done.DONE]
        self.log.tell("done", fence=len(tasks) - len(mine), text=f"{self.name} {_listed(mine)}")

    def _finish_inside(self, tasks: list[Assigned]) -> dict[Any, Done]:
        """Write the work in the transaction that finishes the tasks."""
        with transaction.atomic():
            said = self.dispenser.tasks_done(self.name, tasks)
            mine = [task for task in tasks if said[task.key] == Done.DONE]
            steps = [Step(page=task.key, before=0, fence=task.fence, mark=self.name) for task in mine]
            Step._default_manager.bulk_create(steps)
        return said


def _listed(tasks: list[Assigned]) -> str:
    return " ".join(f"{task.key}:{task.fence}" for task in tasks)
