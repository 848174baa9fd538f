"""One run: a private database, workers, a rebuilder and faults; then the checker runs."""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django

from tests.concurrency.evidence import Log
from tests.eventually import eventually
from tests.servers import SERVERS, Server
from tests.taskqueue.dispenser.proof.judge import Assignment, Row, examine
from tests.taskqueue.dispenser.proof.terms import MOST, NAME, TTL, score
from tests.taskqueue.proof.judge import Findings

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet
    from tests.chaos.wire import Wire

WORKERS = 8
SETTINGS = "tests.chaos.settings"
PATIENCE = 60.0  # seconds without any task being done, after which the run ends
LOOKS, COUNTS = 0.05, 1.0  # seconds
OUTAGE = 0.5
LOST = ("any", "commit", "assigned", "done")


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``every``: seconds between two misfortunes; ``patience``: see ``PATIENCE``."""

    database: str
    tasks: int
    every: float
    seed: int
    patience: float = PATIENCE


def run(plan: Plan, folder: Path) -> Findings:
    """Carry out the plan; return the findings of the checker."""
    if plan.database == "sqlite":
        return _on(f"sqlite:///{folder}/db.sqlite3", None, plan, folder)
    with SERVERS[plan.database]() as server:
        return _on(server.url, server, plan, folder)


def _on(url: str, server: Server | None, plan: Plan, folder: Path) -> Findings:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    django.setup()
    before = _made(plan)
    path = folder / "evidence"
    log = Log(path, who=0)
    with _wire(server, plan, path) as wire:
        through = url
        if server is not None and wire is not None:
            parts = urlsplit(url)
            through = parts._replace(netloc=parts.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
        with (
            _fleet("worker:Worker", log, path, plan, through) as workers,
            _fleet("rebuilder:Rebuilder", log, path, plan, through) as rebuilders,
        ):
            rebuilders.start()
            # Or a busy machine has done all the tasks before the first rebuild.
            eventually(lambda: any(event.what == "rebuilt" for event in log.events()))
            for _ in range(WORKERS):
                workers.start()
            Run(plan, Misfortunes(plan, workers, rebuilders, server, wire), log, before[-1]).until_done()
            workers.leave()
            rebuilders.leave()
    from tests.chaos.models import Step

    steps = Step._default_manager.values_list("page", "fence")
    return examine(log.events(), _in_order(before), _rows(), [Assignment(*step) for step in steps])


def _made(plan: Plan) -> list[Row]:
    """Make the tables and the tasks; return these as they were added."""
    from django.core.management import call_command
    from django.db import connection

    from resourcepool.models import Dispenser
    from resourcepool.taskqueue import TaskDispenser

    call_command("migrate", verbosity=0, run_syncdb=True)
    Dispenser.objects.create(name=NAME, most_expirations=1_000)
    TaskDispenser(NAME).add_many({key: score(key, plan.tasks) for key in range(plan.tasks)})
    rows = sorted(_rows(), key=lambda row: row.pk)
    connection.close()
    return rows


def _rows() -> list[Row]:
    from resourcepool.models import DispenserTask

    rows = DispenserTask.objects.values_list("key", "pk", "state", "fence")
    return [Row(int(key), pk, state, fence) for key, pk, state, fence in rows]


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (score(row.key, len(rows)), row.pk))


@contextlib.contextmanager
def _wire(server: Server | None, plan: Plan, path: Path) -> "Iterator[Wire | None]":
    """Yield a relay to this server that can cut connections and lose replies."""
    from tests.chaos.wire import Wire

    if server is None:
        yield None
        return

    class Dispensing(Wire):
        kinds = {
            "assigned": ("SET STATE = 'ASSIGNED'",) * 2,
            "done": ("SET STATE = 'DONE'",) * 2,
            "commit": ("COMMIT",) * 2,
            "any": ("",) * 2,
        }

    with Dispensing(server.port, plan.database, path, plan.seed) as wire:
        yield wire


def _fleet(kind: str, log: Log, path: Path, plan: Plan, url: str) -> "Fleet":
    from tests.chaos.fleet import Fleet

    class Dispensing(Fleet):
        worker = f"tests.taskqueue.dispenser.proof.{kind}"

        def _disguise(self, shift: str) -> dict[str, str] | None:
            # The clock of SQLite is that of the process: all of them have the same one.
            return None if shift and plan.database == "sqlite" else super()._disguise(shift)

    return Dispensing(log, path, plan.seed, {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS})


class Misfortunes:
    """What befalls workers, rebuilders and their database, one thing at a time."""

    def __init__(
        self, plan: Plan, workers: "Fleet", rebuilders: "Fleet", server: Server | None, wire: "Wire | None"
    ) -> None:
        self.fleets = (workers, rebuilders)
        self._chance = random.Random(f"{plan.seed}/misfortunes")
        self._server, self._wire = server, wire
        self._acts = ["kill"]  # at once: a fast machine is done before much else can happen

    def next(self) -> None:
        """Have the next one happen; each kind comes before one of them comes again."""
        if not self._acts:
            self._acts = ["kill", "kill", "kill", "stop", "stop", "kill rebuilder", "stop rebuilder"]
            if self._server is not None:
                self._acts += ["restart", "cut", "lose", "lose", "lose"]
            self._chance.shuffle(self._acts)
        act = self._acts.pop()
        fleet = self.fleets["rebuilder" in act]
        if act.startswith("kill"):
            fleet.kill(self._chance.choice(fleet.members))
        elif act.startswith("stop"):
            if running := fleet.running():
                fleet.stop(self._chance.choice(running), 2 * TTL)
        elif act == "restart":
            self._restart()
        elif self._wire is not None:
            if act == "cut":
                self._wire.cut()
            else:
                self._wire.lose(self._chance.choice(LOST))

    def _restart(self) -> None:
        from django.db import connection

        assert self._server is not None
        connection.close()
        self._server.kill()
        time.sleep(OUTAGE)
        self._server.start()
        self.fleets[0].log.tell("restarted", 0)


class Run:
    """Looks at the buckets from outside until all is done, and lets misfortunes happen."""

    def __init__(self, plan: Plan, misfortunes: Misfortunes, log: Log, last: Row) -> None:
        self._plan, self._misfortunes, self._log, self._last = plan, misfortunes, log, last.pk

    def until_done(self) -> None:
        from django.db import Error, connection

        from tests.taskqueue.proof.run import _replace_the_dead

        done, changed_at, count_at = -1, time.monotonic(), 0.0
        next_at = changed_at
        while done < self._plan.tasks and time.monotonic() < changed_at + self._plan.patience:
            for fleet in self._misfortunes.fleets:
                fleet.go_on()
                _replace_the_dead(fleet)
            if time.monotonic() > next_at:
                self._misfortunes.next()
                next_at = time.monotonic() + self._plan.every
            try:
                self._look()
                if time.monotonic() > count_at:
                    now_done, count_at = self._done(), time.monotonic() + COUNTS
                    if now_done != done:
                        done, changed_at = now_done, time.monotonic()
            except Error:
                connection.close()
            time.sleep(LOOKS)

    def _look(self) -> None:
        """Note the buckets that have too much, or have something without being there: one statement, one moment."""
        from django.db.models import Count

        from resourcepool.models import DispenserTask

        held = DispenserTask.objects.filter(dispenser_id=NAME, state="assigned")
        buckets = held.values_list("bucket_id", "bucket__id").annotate(tasks=Count("pk"))
        for pk, there, tasks in buckets:
            if tasks > MOST or there is None:
                self._log.tell("over", pk=pk or 0, fence=tasks)
        self._log.tell("looked")

    def _done(self) -> int:
        from resourcepool.models import DispenserTask

        return int(DispenserTask.objects.filter(pk__lte=self._last, state="done").count())
