"""A dispenser under proof: eight workers do its tasks while another process rebuilds the pool every second."""

import random
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from django.db.models import Count

from resourcepool.models import Dispenser, DispenserTask
from resourcepool.taskqueue import TaskDispenser
from tests.chaos.models import Step
from tests.concurrency.evidence import Event, Log
from tests.eventually import eventually
from tests.proof.faults import Deck, Fault, until_done
from tests.proof.findings import Findings
from tests.proof.run import Stage
from tests.taskqueue.dispenser.proof.judge import Assignment, Row, examine
from tests.taskqueue.dispenser.proof.terms import MOST, NAME, TTL, DispenserPlan, score

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

WORKERS = 8
COUNTS = 1.0  # seconds
LOST = ("any", "commit", "assigned", "done")


class Model:
    """The tasks, the workers, the rebuilder, and what befalls them."""

    KINDS = {
        "assigned": ("SET STATE = 'ASSIGNED'",) * 2,
        "done": ("SET STATE = 'DONE'",) * 2,
        "commit": ("COMMIT",) * 2,
        "any": ("",) * 2,
    }

    def __init__(self, plan: DispenserPlan) -> None:
        self.plan, self.chance = plan, random.Random(f"{plan.seed}/misfortunes")
        self.before: list[Row] = []
        self.done, self.count_at = -1, 0.0

    def make(self) -> None:
        Dispenser.objects.create(name=NAME, most_expirations=1_000)
        tasks = self.plan.tasks
        TaskDispenser(NAME).add_many({key: score(key, tasks) for key in range(tasks)})
        self.before = sorted(_rows(), key=lambda row: row.pk)

    def drive(self, stage: Stage) -> None:
        folder = "tests.taskqueue.dispenser.proof"
        with (
            stage.fleet(f"{folder}.worker:Worker") as workers,
            stage.fleet(f"{folder}.rebuilder:Rebuilder", 1) as rebuilders,
        ):
            # Or a busy machine has done all the tasks before the first rebuild.
            eventually(lambda: any(event.what == "rebuilt" for event in stage.log.events()))
            for _ in range(WORKERS):
                workers.start()
            kill = partial(self._kill, workers)  # at once: a fast machine is done before much else can happen
            deck = Deck(self.plan.seed, lambda: self._faults(stage, workers, rebuilders), first=[kill])
            deck.next()
            until_done(
                [workers, rebuilders],
                deck.next,
                lambda: self._progress(stage.log),
                every=self.plan.every,
                patience=self.plan.patience,
            )
            workers.leave()

    def examine(self, events: Sequence[Event]) -> Findings:
        steps = Step._default_manager.values_list("page", "fence")
        before = sorted(self.before, key=lambda row: (score(row.key, len(self.before)), row.pk))
        return examine(events, before, _rows(), [Assignment(*step) for step in steps])

    def _faults(self, stage: Stage, workers: "Fleet", rebuilders: "Fleet") -> list[Fault]:
        dealt: list[Fault] = [partial(self._kill, workers)] * 3 + [partial(self._stop, workers)] * 2
        dealt += [partial(self._kill, rebuilders), partial(self._stop, rebuilders)]
        if (wire := stage.wire) is not None:
            dealt += [stage.restart, wire.cut]
            dealt += [partial(wire.lose, self.chance.choice(LOST)) for _ in range(3)]
        return dealt

    def _kill(self, fleet: "Fleet") -> None:
        fleet.kill(self.chance.choice(fleet.members))

    def _stop(self, fleet: "Fleet") -> None:
        if running := fleet.running():
            fleet.stop(self.chance.choice(running), 2 * TTL)

    def _progress(self, log: Log) -> tuple[int, bool]:
        _look(log)
        if time.monotonic() > self.count_at:
            rows = DispenserTask.objects.filter(pk__lte=self.before[-1].pk, state="done")
            self.done, self.count_at = rows.count(), time.monotonic() + COUNTS
        return self.done, self.done >= self.plan.tasks


def _look(log: Log) -> None:
    """Note the buckets that have too much, or have something without being there: one statement, one moment."""
    held = DispenserTask.objects.filter(dispenser_id=NAME, state="assigned")
    for pk, there, tasks in held.values_list("bucket_id", "bucket__id").annotate(tasks=Count("pk")):
        if tasks > MOST or there is None:
            log.tell("over", pk=pk or 0, fence=tasks)
    log.tell("looked")


def _rows() -> list[Row]:
    rows = DispenserTask.objects.values_list("key", "pk", "state", "fence")
    return [Row(int(key), pk, state, fence) for key, pk, state, fence in rows]
