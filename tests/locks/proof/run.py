"""One run: a private database, workers, what is done to them; then the judge looks."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django

from tests.concurrency.evidence import Log
from tests.locks.proof.judge import Written, examine
from tests.locks.proof.terms import BUFFER, CONSUMED, NOT_EMPTY, NOT_FULL, TTL
from tests.servers import SERVERS, Server
from tests.servers.redis import Redis
from tests.taskqueue.proof.judge import Findings

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet
    from tests.chaos.wire import Wire

WORKERS = 8
SETTINGS = "tests.locks.proof.settings"
LOOKS, OUTAGE, STALL = 0.05, 0.5, 0.5  # seconds
LONGER = 120.0  # seconds more, on a crowded machine, until there is something to judge
LEFT = 15.0  # seconds in which a notification that was left must reach who waits
ACTS = ("kill",) * 6 + ("stop",) * 4
ON_SERVERS = ("restart", "cut", "cut") + ("lose",) * 6  # a restart costs everybody some seconds
ON_BROKERS = ("broker_killed",) * 2 + ("broker_stopped",) * 4
LOST = ("any", "commit", "busy")


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``seconds``: how long, ``every``: seconds between two misfortunes; ``hints``: with a Redis."""

    database: str
    seconds: float
    every: float
    hints: bool
    seed: int


def run(plan: Plan, folder: Path) -> Findings:
    """Carry the plan out and return what the judge found."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Redis()) if plan.hints else None
        if plan.database == "sqlite":
            return _on(f"sqlite:///{folder}/db.sqlite3", None, broker, plan, folder)
        server = stack.enter_context(SERVERS[plan.database]())
        return _on(server.url, server, broker, plan, folder)


def _on(url: str, server: Server | None, broker: Redis | None, plan: Plan, folder: Path) -> Findings:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    os.environ["RESOURCEPOOL_HINTS"] = "" if broker is None else broker.url
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from tests.chaos.models import Step

    call_command("migrate", verbosity=0, run_syncdb=True)
    connection.close()
    path = folder / "evidence"
    log = Log(path, who=0)
    with _wire(server, plan, path) as wire:
        through = url
        if server is not None and wire is not None:
            parts = urlsplit(url)
            through = parts._replace(netloc=parts.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
        with _fleet(log, path, plan, through) as fleet:
            for _ in range(WORKERS):
                fleet.start()
            _until_over(plan, fleet, Misfortunes(plan, fleet, server, wire, broker))
            fleet.leave()
    _take_what_is_left(log)
    steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
    return examine(log.events(), [Written(*step) for step in steps])


@contextlib.contextmanager
def _wire(server: Server | None, plan: Plan, path: Path) -> "Iterator[Wire | None]":
    """Yield a relay to this server that can cut connections and lose replies."""
    from tests.chaos.wire import Wire

    if server is None:
        yield None
        return

    class Locking(Wire):
        kinds = {"busy": ("BUSY_BEFORE",) * 2, "commit": ("COMMIT",) * 2, "any": ("",) * 2}

    with Locking(server.port, plan.database, path, plan.seed) as wire:
        yield wire


def _fleet(log: Log, path: Path, plan: Plan, url: str) -> "Fleet":
    from tests.chaos.fleet import Fleet

    class Locking(Fleet):
        worker = "tests.locks.proof.worker:Worker"

        def _disguise(self, shift: str) -> dict[str, str] | None:
            # The clock of SQLite is that of the process: all of them have the same one.
            return None if shift and plan.database == "sqlite" else super()._disguise(shift)

    return Locking(log, path, plan.seed, {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS})


def _take_what_is_left(log: Log) -> None:
    """Wait for the notifications whose waiters died while nobody else waited, as anybody might now."""
    from resourcepool.locks import Lock
    from resourcepool.models import ConditionWaiter
    from tests.locks.proof.conditions import NotedCondition

    for name in (NOT_EMPTY, NOT_FULL):
        condition = NotedCondition(Lock(BUFFER, ttl=TTL), name, log)
        with condition:
            for _ in range(ConditionWaiter.objects.filter(name=name).count()):
                condition.wait(LEFT)


class Misfortunes:
    """What befalls workers and their database, one thing at a time."""

    def __init__(
        self, plan: Plan, fleet: "Fleet", server: Server | None, wire: "Wire | None", broker: Redis | None
    ) -> None:
        self.fleet, self._server, self._wire, self._broker = fleet, server, wire, broker
        self._chance = random.Random(f"{plan.seed}/misfortunes")
        self._acts: list[str] = []

    def next(self) -> None:
        """Have the next one happen; each kind comes before one of them comes again."""
        if not self._acts:
            self._acts = [*ACTS, *(ON_SERVERS if self._server is not None else ())]
            self._acts += ON_BROKERS if self._broker is not None else ()
            self._chance.shuffle(self._acts)
        if self._broker is not None and self._broker.process is not None:
            self._broker.process.send_signal(signal.SIGCONT)
        act = self._acts.pop()
        if act == "kill":
            self.fleet.kill(self._chance.choice(self.fleet.members))
        elif act == "stop":
            if running := self.fleet.running():
                self.fleet.stop(self._chance.choice(running), 2 * TTL)
        elif act == "restart":
            self._restart()
        elif act in ON_BROKERS and self._broker is not None:
            self._disturb(self._broker, act)
        elif self._wire is not None:
            if act == "cut":
                self._wire.cut()
            else:
                self._wire.lose(self._chance.choice(LOST))

    def _restart(self) -> None:
        assert self._server is not None
        began = time.monotonic()
        self._server.kill()
        time.sleep(OUTAGE)
        self._server.start()
        self.fleet.log.tell("restarted", 0, since=began)

    def _disturb(self, broker: Redis, act: str) -> None:
        """Have the broker end, or stand still until the next misfortune: it accepts everything, and answers nothing."""
        assert broker.process is not None
        self.fleet.log.tell(act)
        if act == "broker_stopped":
            broker.process.send_signal(signal.SIGSTOP)
        else:
            broker.kill()
            broker.start()


def _until_over(plan: Plan, fleet: "Fleet", misfortunes: Misfortunes) -> None:
    from tests.taskqueue.proof.run import _replace_the_dead

    until = time.monotonic() + plan.seconds
    next_at = time.monotonic() + plan.every
    while (now := time.monotonic()) < until or (now < until + LONGER and not _is_telling(fleet.log)):
        fleet.go_on()
        _replace_the_dead(fleet)
        if time.monotonic() > next_at:
            misfortunes.next()
            next_at = time.monotonic() + plan.every
        before = time.monotonic()
        time.sleep(LOOKS)
        if time.monotonic() - before > STALL:  # the machine was busy: places in line may have lapsed
            fleet.log.tell("stalled", 0, since=before)


def _is_telling(log: Log) -> bool:
    """Whether somebody was killed, and something was consumed: a run without that shows nothing."""
    from django.db import DatabaseError, connection

    from tests.chaos.models import Step

    if not any(event.what == "killed" for event in log.events()):
        return False
    try:
        return Step._default_manager.filter(page=CONSUMED).exists()
    except DatabaseError:  # it was restarted, or is away
        return False
    finally:
        connection.close()
