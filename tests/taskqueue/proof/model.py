"""Streams under proof: three consumers do tasks that are submitted during the run, in their lanes."""

import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import NewTask, submit_many
from tests.chaos.models import Step
from tests.concurrency.evidence import Event
from tests.proof.faults import Deck, Fault, until_done
from tests.proof.findings import Findings
from tests.proof.run import Stage
from tests.taskqueue.proof.judge import Written, examine
from tests.taskqueue.proof.terms import STREAM, TERM_TTL, TYPE, StreamPlan

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet, Member

CONSUMERS = 3
PATIENCE = 120.0  # seconds without any task being done, after which the run ends
LOST = ("any", "commit", "task", "guard")
SUBMITTED_AT_ONCE = 50


class Model:
    """The stream, its consumers, and what befalls the leader."""

    KINDS = {
        "guard": ("UPDATE RESOURCEPOOL_STREAM SET BUSY_BEFORE",) * 2,
        "task": ("UPDATE RESOURCEPOOL_TASK SET",) * 2,
        "commit": ("COMMIT",) * 2,
        "any": ("",) * 2,
    }

    def __init__(self, plan: StreamPlan) -> None:
        self.plan, self.submitter = plan, Submitter(plan)
        self.chance = random.Random(f"{plan.seed}/lost")

    def make(self) -> None:
        options = {"retries": 1_000, "retry_delay": 0.05, "max_crashes": 100}
        Stream.objects.create(name=STREAM, term_ttl=TERM_TTL, lanes=self.plan.lanes, **options)

    def drive(self, stage: Stage) -> None:
        with stage.fleet("tests.taskqueue.proof.worker:Worker", CONSUMERS) as fleet:
            broker: list[Fault] = [] if stage.broker is None else [stage.restart_broker]
            deck = Deck(self.plan.seed, lambda: [*self._faults(stage, fleet), *broker], first=broker)
            until_done([fleet], deck.next, self._progress, every=self.plan.every, patience=PATIENCE)

    def examine(self, events: Sequence[Event]) -> Findings:
        steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
        done = Task.objects.filter(state=Task.State.DONE).count()
        return examine(events, [Written(*step) for step in steps], self.plan.tasks, done)

    def _faults(self, stage: Stage, fleet: "Fleet") -> list[Fault]:
        kill, pause = partial(_kill_leader, fleet), partial(_pause_leader, fleet)
        assert stage.wire is not None
        lose = [partial(stage.wire.lose, self.chance.choice(LOST)) for _ in range(2)]
        return [kill, kill, pause, stage.restart, stage.wire.cut, *lose]

    def _progress(self) -> tuple[int, bool]:
        if self.submitter.left:
            self.submitter.next()
        left = Task.objects.unfinished().count()
        return left, not (left or self.submitter.left)


def _leader(fleet: "Fleet") -> "Member | None":
    holder = Stream.objects.get().holder
    return next((one for one in fleet.running() if f"-{one.pid}-" in holder or str(one.pid) in holder), None)


def _kill_leader(fleet: "Fleet") -> None:
    if (leader := _leader(fleet)) is not None:
        fleet.kill(leader)


def _pause_leader(fleet: "Fleet") -> None:
    if (leader := _leader(fleet)) is not None:
        fleet.stop(leader, 2 * TERM_TTL)


class Submitter:
    """Submits the tasks in their order, half of them at the beginning, the others a few at a time during the run."""

    def __init__(self, plan: StreamPlan) -> None:
        self._plan, self._next = plan, 0

    @property
    def left(self) -> int:
        """How many tasks have yet to be submitted."""
        return self._plan.tasks - self._next

    def next(self) -> None:
        """Submit the next ones, and the last ones again, as after an error that left open whether they were added."""
        most = SUBMITTED_AT_ONCE if self._next else self._plan.tasks // 2
        until = min(self._next + most, self._plan.tasks)
        numbers = range(max(0, self._next - SUBMITTED_AT_ONCE), until)
        lanes = [number % self._plan.lanes for number in numbers]
        tasks = [
            NewTask(TYPE, {"number": number, "lane": lane}, key=str(number), lane=f"lane {lane}")
            for number, lane in zip(numbers, lanes, strict=True)
        ]
        submit_many(STREAM, tasks)
        self._next = until
