"""Locks of every kind under proof: eight workers use them; then the notifications that were left are taken."""

import random
import signal
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from resourcepool.locks import Lock
from resourcepool.models import ConditionWaiter
from tests.chaos.models import Step
from tests.concurrency.evidence import Event, Log
from tests.locks.proof.conditions import NotedCondition
from tests.locks.proof.judge import Written, examine
from tests.locks.proof.terms import BUFFER, CONSUMED, NOT_EMPTY, NOT_FULL, TTL, LockPlan
from tests.proof.faults import Deck, Fault, until_done
from tests.proof.findings import Findings
from tests.proof.run import Stage

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

WORKERS = 8
LONGER = 120.0  # seconds more, on a crowded machine, until there is something to judge
LEFT = 15.0  # seconds in which a notification that was left must reach who waits
LOST = ("any", "commit", "busy")


class Model:
    """The workers, and what befalls them."""

    KINDS = {"busy": ("BUSY_BEFORE",) * 2, "commit": ("COMMIT",) * 2, "any": ("",) * 2}

    def __init__(self, plan: LockPlan) -> None:
        self.plan, self.chance, self.until = plan, random.Random(f"{plan.seed}/misfortunes"), 0.0

    def make(self) -> None:
        """Locks are made by who takes them."""

    def drive(self, stage: Stage) -> None:
        with stage.fleet("tests.locks.proof.worker:Worker", WORKERS) as fleet:
            deck = Deck(self.plan.seed, lambda: self._faults(stage, fleet))
            self.until = time.monotonic() + self.plan.seconds
            until_done(
                [fleet],
                lambda: self._next(stage, deck),
                lambda: self._progress(stage.log),
                every=self.plan.every,
                patience=self.plan.seconds + LONGER,
            )
        _take_what_is_left(stage.log)

    def examine(self, events: Sequence[Event]) -> Findings:
        steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
        return examine(events, [Written(*step) for step in steps])

    def _faults(self, stage: Stage, fleet: "Fleet") -> list[Fault]:
        dealt: list[Fault] = [lambda: fleet.kill(self.chance.choice(fleet.members))] * 6
        dealt += [lambda: self._stop_one(fleet)] * 4
        if (wire := stage.wire) is not None:  # a restart costs everybody some seconds
            dealt += [stage.restart, wire.cut, wire.cut]
            dealt += [partial(wire.lose, self.chance.choice(LOST)) for _ in range(6)]
        if stage.broker is not None:
            dealt += [stage.restart_broker] * 2 + [partial(_stop_broker, stage)] * 4
        return dealt

    def _stop_one(self, fleet: "Fleet") -> None:
        if running := fleet.running():
            fleet.stop(self.chance.choice(running), 2 * TTL)

    def _next(self, stage: Stage, deck: Deck) -> None:
        if stage.broker is not None and stage.broker.process is not None:
            stage.broker.process.send_signal(signal.SIGCONT)
        deck.next()

    def _progress(self, log: Log) -> tuple[None, bool]:
        return None, time.monotonic() > self.until and _is_telling(log)


def _stop_broker(stage: Stage) -> None:
    """Let the broker stand still until the next fault: it accepts everything, and answers nothing."""
    assert stage.broker is not None
    assert stage.broker.process is not None
    stage.log.tell("broker_stopped")
    stage.broker.process.send_signal(signal.SIGSTOP)


def _is_telling(log: Log) -> bool:
    """Whether somebody was killed, and something was consumed: a run without that shows nothing."""
    was_killed = any(event.what == "killed" for event in log.events())
    return was_killed and Step._default_manager.filter(page=CONSUMED).exists()


def _take_what_is_left(log: Log) -> None:
    """Wait for the notifications whose waiters died while nobody else waited, as anybody might now."""
    for name in (NOT_EMPTY, NOT_FULL):
        condition = NotedCondition(Lock(BUFFER, ttl=TTL), name, log)
        with condition:
            for _ in range(ConditionWaiter.objects.filter(name=name).count()):
                condition.wait(LEFT)
