"""One run: a private database, workers that are killed and stopped, a restart; then the judge looks."""

import json
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.concurrency.evidence import Log
from tests.locks.channels.proof.judge import Effect, Kept, examine
from tests.locks.channels.proof.terms import CHANNEL, NAMES, TTL
from tests.servers import SERVERS, Server
from tests.taskqueue.proof.judge import Findings

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

WORKERS = 4
SETTINGS = "tests.chaos.settings"
PATIENCE = 90.0  # seconds without anything being done, after which the run ends
LOOKS = 0.1  # seconds
OUTAGE = 0.5


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``every``: seconds between two misfortunes."""

    database: str
    messages: int
    every: float
    seed: int


def run(plan: Plan, folder: Path) -> Findings:
    """Carry the plan out and return what the judge found."""
    with SERVERS[plan.database]() as server:
        return _on(server, plan, folder)


def _on(server: Server, plan: Plan, folder: Path) -> Findings:
    chosen = {
        "DATABASE_URL": server.url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "PROOF_MESSAGES": str(plan.messages),
    }
    os.environ |= chosen
    django.setup()
    from tests.chaos.fleet import Fleet

    class Workers(Fleet):
        worker = "tests.locks.channels.proof.worker:Worker"

    from django.core.management import call_command

    path = folder / "evidence"
    log = Log(path, who=0)
    call_command("migrate", verbosity=0, run_syncdb=True)
    from resourcepool.locks.channels.models import Message as MessageRow
    from tests.chaos.models import Step

    with Workers(log, path, plan.seed, chosen) as fleet:
        for _ in range(WORKERS):
            fleet.start()
        _until_done(plan, fleet, server, log)
        fleet.leave()
    kept = [
        Kept(number, *json.loads(payload))
        for number, payload in MessageRow.objects.order_by("number").values_list("number", "payload")
    ]
    effects = Step._default_manager.order_by("pk").values_list("mark", "before")
    return examine(log.events(), kept, [Effect(*one) for one in effects])


def _until_done(plan: Plan, fleet: "Fleet", server: Server, log: Log) -> None:
    from django.db import DatabaseError, InterfaceError, connection

    chance = random.Random(f"{plan.seed}/misfortunes")
    changed_at, before, is_restarted = time.monotonic(), (-1, -1), False
    next_at = time.monotonic() + plan.every
    while time.monotonic() < changed_at + PATIENCE:
        is_enough = (
            before[0] >= plan.messages
        )  # one that goes on after the end would still publish what it had begun
        fleet.go_on(all_of_them=is_enough)
        if time.monotonic() > next_at and not is_enough:
            _misfortune(fleet, chance)
            next_at = time.monotonic() + plan.every
        try:
            now = _done()
        except (DatabaseError, InterfaceError):
            connection.close()
            continue
        if not is_restarted and now[0] > plan.messages / 2:
            is_restarted = True
            connection.close()
            server.kill()
            time.sleep(OUTAGE)
            server.start()
            log.tell("restarted")
        if now != before:
            before, changed_at = now, time.monotonic()
        if now[0] >= plan.messages and now[1] == len(NAMES) * now[0] and time.monotonic() > changed_at + 1:
            return
        time.sleep(LOOKS)


def _misfortune(fleet: "Fleet", chance: random.Random) -> None:
    member = chance.choice(fleet.running())
    if chance.random() < 0.5 and len(fleet.running()) > 1:
        fleet.stop(member, chance.choice((0.3, TTL + 1)))
    else:
        fleet.kill(member)


def _done() -> tuple[int, int]:
    """Return the number of the newest message, and how many effects there are."""
    from resourcepool.locks.channels.models import Channel as ChannelRow
    from tests.chaos.models import Step

    last = ChannelRow.objects.filter(pk=CHANNEL).values_list("last", flat=True).first() or 0
    return last, Step._default_manager.count()
