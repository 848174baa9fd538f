"""Channels under proof: four processes publish, read and listen; their database is restarted once."""

import json
import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from tests.chaos.models import Step
from tests.concurrency.evidence import Event
from tests.locks.channels.proof.judge import Effect, Kept, examine
from tests.locks.channels.proof.terms import CHANNEL, NAMES, TTL, ChannelPlan
from tests.proof.faults import until_done
from tests.proof.findings import Findings
from tests.proof.run import Stage

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

WORKERS = 4
PATIENCE = 90.0  # seconds without anything being done, after which the run ends
STILL = 20  # looks in which nothing came any more


class Model:
    """The channel, its processes, and what befalls them."""

    KINDS: dict[str, tuple[str, str]] = {}

    def __init__(self, plan: ChannelPlan) -> None:
        self.plan, self.chance = plan, random.Random(f"{plan.seed}/misfortunes")
        self.seen, self.still, self.is_restarted = (0, 0), 0, False

    def make(self) -> None:
        os.environ["PROOF_MESSAGES"] = str(self.plan.messages)

    def drive(self, stage: Stage) -> None:
        with stage.fleet("tests.locks.channels.proof.worker:Worker", WORKERS) as fleet:
            until_done(
                [fleet],
                lambda: self._disturb(fleet),
                lambda: self._progress(stage, fleet),
                every=self.plan.every,
                patience=PATIENCE,
            )

    def examine(self, events: Sequence[Event]) -> Findings:
        rows = MessageRow.objects.order_by("number").values_list("number", "payload")
        kept = [Kept(number, *json.loads(payload)) for number, payload in rows]
        effects = Step._default_manager.order_by("pk").values_list("mark", "before")
        return examine(events, kept, [Effect(*one) for one in effects])

    def _disturb(self, fleet: "Fleet") -> None:
        if self.seen[0] >= self.plan.messages:
            return
        member = self.chance.choice(fleet.running())
        if self.chance.random() < 0.5 and len(fleet.running()) > 1:
            fleet.stop(member, self.chance.choice((0.3, TTL + 1)))
        else:
            fleet.kill(member)

    def _progress(self, stage: Stage, fleet: "Fleet") -> tuple[tuple[int, int], bool]:
        """Return the number of the newest message and how many effects there are; and whether all were read."""
        last = ChannelRow.objects.filter(pk=CHANNEL).values_list("last", flat=True).first() or 0
        now = last, Step._default_manager.count()
        if not self.is_restarted and last > self.plan.messages / 2:
            self.is_restarted = True
            stage.restart()
        if last >= self.plan.messages:  # one that goes on after the end would still publish what it had begun
            fleet.go_on(all_of_them=True)
        self.still = self.still + 1 if now == self.seen else 0
        self.seen = now
        return now, last >= self.plan.messages and now[1] == len(NAMES) * last and self.still > STILL
