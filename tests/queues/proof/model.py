"""Queues under proof: six servers share them while servers come, leave and fail, one at a time or many at once."""

import contextlib
import random
import time
from collections.abc import Sequence

from tests.concurrency.evidence import Event
from tests.proof.run import Stage
from tests.queues.proof.changes import Changes, Watch
from tests.queues.proof.database_state import left_behind, make_rows, writes
from tests.queues.proof.evidence import Change, Evidence
from tests.queues.proof.judge import BY_THE_CLOCK, Findings, examine
from tests.queues.proof.processes import KINDS, ServerProcesses
from tests.queues.proof.terms import QueuePlan

SERVERS_AT_FIRST = 6
STORM = 10.0  # seconds


class Model:
    """The queues, their servers, and the changes."""

    KINDS = KINDS

    def __init__(self, plan: QueuePlan) -> None:
        self.plan, self.changes = plan, list[Change]()

    def make(self) -> None:
        make_rows()

    def drive(self, stage: Stage) -> None:
        with stage.fleet("tests.queues.proof.worker:Worker", kind=ServerProcesses) as processes:
            watch, changes = (
                Watch(stage.log),
                Changes(processes, stage.wire, stage.server, stage.log, self.plan.seed),
            )
            self.changes = changes.made
            watch.start()
            with contextlib.suppress(KeyboardInterrupt):
                self._carry_out(changes, stage)
            stage.log.tell("ending")
            processes.leave()
            watch.end()

    def examine(self, events: Sequence[Event]) -> Findings:
        findings = examine(events, Evidence(self.changes, writes(), left_behind()))
        findings.excused = BY_THE_CLOCK if self.plan.at_any_speed else ()
        return findings

    def _carry_out(self, changes: Changes, stage: Stage) -> None:
        changes.start(SERVERS_AT_FIRST)
        stage.log.tell("begin")
        began, chance = time.monotonic(), random.Random(f"{self.plan.seed}/acts")
        changes.join()
        changes.leave()
        changes.kill()
        if stage.server is not None:  # SQLite: whoever is stopped in a transaction has locked the file
            changes.pause()
            changes.restart()
        while time.monotonic() < began + self.plan.minutes * 60:
            changes.storm(STORM, SERVERS_AT_FIRST)
            acts = [changes.join, changes.join, changes.leave, changes.close, changes.kill]
            acts += [changes.pause, changes.blink, changes.restart] if stage.server is not None else []
            chance.shuffle(acts)
            for act in acts:
                if time.monotonic() < began + self.plan.minutes * 60:
                    act()
        changes.rest()
