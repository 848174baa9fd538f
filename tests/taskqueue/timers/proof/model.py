"""Timers under proof: four nodes handle them while they are killed or stopped; the database is restarted once."""

import datetime
import math
import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import connection

from resourcepool.db.dialect import read_clock
from resourcepool.models import Timer, Topic
from tests.chaos.models import Step
from tests.concurrency.evidence import Event
from tests.proof.faults import until_done
from tests.proof.findings import Findings
from tests.proof.run import Stage
from tests.taskqueue.proof.judge import Written
from tests.taskqueue.timers.proof.judge import examine
from tests.taskqueue.timers.proof.terms import TOPIC, TTL, TimerPlan

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

NODES = 4
PATIENCE = 90.0  # seconds without any timer being done, after which the run ends
STOPS = (2 * TTL, 6.0)  # seconds; the second is long enough for the database server to end the session


class Model:
    """The topic, its nodes, and what befalls them."""

    KINDS: dict[str, tuple[str, str]] = {}

    def __init__(self, plan: TimerPlan) -> None:
        self.plan, self.chance = plan, random.Random(f"{plan.seed}/kills")
        self.restart_at = math.inf

    def make(self) -> None:
        Topic.objects.create(name=TOPIC, ttl=TTL, retries=1_000, retry_delay=0.05, max_crashes=100)

    def drive(self, stage: Stage) -> None:
        with stage.fleet("tests.taskqueue.timers.proof.worker:Worker", NODES) as fleet:
            self._schedule()
            self.restart_at = time.monotonic() + self.plan.over / 2
            until_done(
                [fleet],
                lambda: self._disturb(fleet),
                lambda: self._progress(stage),
                every=self.plan.every,
                patience=PATIENCE,
            )

    def examine(self, events: Sequence[Event]) -> Findings:
        steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
        done = Timer.objects.filter(state=Timer.State.DONE).count()
        return examine(events, [Written(*step) for step in steps], self.plan.timers, done)

    def _schedule(self) -> None:
        start, step = read_clock(connection), self.plan.over / self.plan.timers
        moments = [start + datetime.timedelta(seconds=2 + number * step) for number in range(self.plan.timers)]
        rows = [
            Timer(topic_id=TOPIC, name=f"n{no}", payload=f'{{"number": {no}}}', due_at=at, busy_before=at)
            for no, at in enumerate(moments)
        ]
        Timer.objects.bulk_create(rows, batch_size=1_000)

    def _disturb(self, fleet: "Fleet") -> None:
        if running := fleet.running():
            member, seconds = self.chance.choice(running), self.chance.choice((0.0, 0.0, *STOPS))
            if seconds:
                fleet.stop(member, seconds)
            else:
                fleet.kill(member)

    def _progress(self, stage: Stage) -> tuple[int, bool]:
        if time.monotonic() > self.restart_at:
            self.restart_at = math.inf
            stage.restart()
        left = Timer.objects.unfinished().count()
        return left, not left
