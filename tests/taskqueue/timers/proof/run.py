"""One run: a private database, nodes that are killed or suspended, a restart; then the checker runs."""

import os
import random
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.concurrency.evidence import Log
from tests.servers import SERVERS, Server
from tests.taskqueue.proof.judge import Findings, Written
from tests.taskqueue.timers.proof.judge import examine
from tests.taskqueue.timers.proof.terms import TOPIC, TTL

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet

NODES = 4
SETTINGS = "tests.chaos.settings"
PATIENCE = 90.0  # seconds without any timer being done, after which the run ends
LOOKS = 0.1  # seconds
OUTAGE = 0.5
STOPS = (2 * TTL, 6.0)  # the second is long enough for the database server to end the session


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``over``: seconds in which the timers are due, ``every``: between two kills or stops."""

    database: str
    timers: int
    over: float
    every: float
    seed: int


def run(plan: Plan, folder: Path) -> Findings:
    """Carry out the plan; return the findings of the checker."""
    with SERVERS[plan.database]() as server:
        return _on(server, plan, folder)


def _on(server: Server, plan: Plan, folder: Path) -> Findings:
    os.environ |= {"DATABASE_URL": server.url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    django.setup()
    from tests.chaos.fleet import Fleet

    class Nodes(Fleet):
        worker = "tests.taskqueue.timers.proof.worker:Worker"

    path = folder / "evidence"
    log = Log(path, who=0)
    _migrate()
    with Nodes(log, path, plan.seed, {"DATABASE_URL": server.url, "DJANGO_SETTINGS_MODULE": SETTINGS}) as fleet:
        for _ in range(NODES):
            fleet.start()
        _set(plan)
        _until_done(plan, fleet, server, log)
        fleet.leave()
    from resourcepool.models import Timer
    from tests.chaos.models import Step

    steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
    done = Timer.objects.filter(state=Timer.State.DONE).count()
    return examine(log.events(), [Written(*step) for step in steps], plan.timers, done)


def _migrate() -> None:
    from django.core.management import call_command

    from resourcepool.models import Topic

    call_command("migrate", verbosity=0, run_syncdb=True)
    Topic.objects.create(name=TOPIC, ttl=TTL, retries=1_000, retry_delay=0.05, max_crashes=100)


def _set(plan: Plan) -> None:
    import datetime

    from django.db import connection

    from resourcepool.db.dialect import read_clock
    from resourcepool.models import Timer

    start, step = read_clock(connection), plan.over / plan.timers
    moments = [start + datetime.timedelta(seconds=2 + number * step) for number in range(plan.timers)]
    rows = [
        Timer(topic_id=TOPIC, name=f"n{number}", payload=f'{{"number": {number}}}', due_at=at, busy_before=at)
        for number, at in enumerate(moments)
    ]
    Timer.objects.bulk_create(rows, batch_size=1_000)
    connection.close()


def _until_done(plan: Plan, fleet: "Fleet", server: Server, log: Log) -> None:
    from django.db import DatabaseError, InterfaceError, connection

    from resourcepool.models import Timer
    from tests.taskqueue.proof.run import _replace_the_dead

    chance = random.Random(f"{plan.seed}/kills")
    acts = [fleet.kill, fleet.kill, *(partial(fleet.stop, seconds=seconds) for seconds in STOPS)]
    begun_at = changed_at = time.monotonic()
    kill_at, restart_at, left = begun_at + plan.every, begun_at + plan.over / 2, -1
    while left and time.monotonic() < changed_at + PATIENCE:
        _replace_the_dead(fleet)
        fleet.go_on()
        if time.monotonic() > kill_at:
            if running := fleet.running():
                chance.choice(acts)(chance.choice(running))
            kill_at = time.monotonic() + plan.every
        if time.monotonic() > restart_at:
            restart_at = float("inf")
            connection.close()
            server.kill()
            time.sleep(OUTAGE)
            server.start()
            log.tell("restarted")
        try:
            now_left = Timer.objects.unfinished().count()
        except (DatabaseError, InterfaceError):
            connection.close()
            continue
        if now_left != left:
            left, changed_at = now_left, time.monotonic()
        time.sleep(LOOKS)
