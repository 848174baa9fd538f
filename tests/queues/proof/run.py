"""One run: a private database, the relay, the servers and the changes; then the judge examines the evidence."""

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
from tests.queues.proof.evidence import Evidence
from tests.queues.proof.judge import Findings, examine
from tests.servers import SERVERS, Server

if TYPE_CHECKING:
    from tests.queues.proof.changes import Changes
    from tests.queues.proof.processes import QueueWire

SERVERS_AT_FIRST = 6
STORM = 10.0  # seconds
SETTINGS = "tests.chaos.settings"


@dataclass(frozen=True)
class Plan:
    """The arguments of a run; ``seconds``: 0: each change once, and no storm."""

    database: str
    seconds: float
    seed: int


def run(plan: Plan, folder: Path) -> Findings:
    """Carry out the plan and return the findings of the judge; Ctrl-C shortens it."""
    if plan.database == "sqlite":
        return _on(f"sqlite:///{folder}/db.sqlite3", None, plan, folder)
    with SERVERS[plan.database]() as server:
        return _on(server.url, server, plan, folder)


def _on(url: str, server: Server | None, plan: Plan, folder: Path) -> Findings:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    django.setup()
    # Only now is it known on which database Django works.
    from tests.queues.proof.changes import Changes, Watch
    from tests.queues.proof.database_state import left_behind, make_tables, writes
    from tests.queues.proof.processes import ServerProcesses

    make_tables()
    path = folder / "evidence"
    log = Log(path, who=0)
    with _wire(server, plan, path) as (wire, through):
        with ServerProcesses(
            log, path, plan.seed, {"DATABASE_URL": through, "DJANGO_SETTINGS_MODULE": SETTINGS}
        ) as processes:
            watch, changes = Watch(log), Changes(processes, wire, server, log, plan.seed)
            watch.start()
            with contextlib.suppress(KeyboardInterrupt):
                _throw(changes, plan, log)
            log.tell("ending")
            processes.leave()
            watch.end()
        evidence = Evidence(changes.made, writes(), left_behind())
    return examine(log.events(), evidence)


def _throw(changes: "Changes", plan: Plan, log: Log) -> None:
    changes.start(SERVERS_AT_FIRST)
    log.tell("begin")
    began, chance = time.monotonic(), random.Random(f"{plan.seed}/acts")
    changes.join()
    changes.leave()
    changes.kill()
    if plan.database != "sqlite":  # where a process that is stopped in a transaction has locked the whole file
        changes.pause()
        changes.restart()
    while time.monotonic() < began + plan.seconds:
        changes.storm(STORM, SERVERS_AT_FIRST)
        acts = [changes.join, changes.join, changes.leave, changes.close, changes.kill]
        acts += [changes.pause, changes.blink, changes.restart] if plan.database != "sqlite" else []
        chance.shuffle(acts)
        for act in acts:
            if time.monotonic() < began + plan.seconds:
                act()
    changes.rest()


@contextlib.contextmanager
def _wire(server: Server | None, plan: Plan, path: Path) -> Iterator[tuple["QueueWire | None", str]]:
    from tests.queues.proof.processes import QueueWire

    if server is None:
        yield None, os.environ["DATABASE_URL"]
        return
    with QueueWire(server.port, plan.database, path, plan.seed) as wire:
        url = urlsplit(server.url)
        yield wire, url._replace(netloc=url.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
