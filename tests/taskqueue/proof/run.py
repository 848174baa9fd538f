"""One run: a private database, the relay, consumers and faults; then the checker runs."""

import contextlib
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django

from tests.concurrency.evidence import Log
from tests.servers import SERVERS, Server, ServerMissing
from tests.servers.redis import Redis
from tests.taskqueue.proof.judge import Findings, Written, examine
from tests.taskqueue.proof.terms import STREAM, TERM_TTL, TYPE

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet, Member
    from tests.chaos.wire import Wire

CONSUMERS = 3
SETTINGS = "tests.chaos.settings"
PATIENCE = 120.0  # seconds without any task being done, after which the run ends
LOST = ("any", "commit", "task", "guard")
MEMBERS_LOOKED_AT = 0.1  # seconds
OUTAGE = 0.5
SUBMITTED_AT_ONCE = 50


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``every``: seconds between two misfortunes."""

    database: str
    tasks: int
    lanes: int
    every: float
    seed: int


def run(plan: Plan, folder: Path) -> Findings:
    """Carry out the plan; return the findings of the checker."""
    with SERVERS[plan.database]() as server, contextlib.ExitStack() as stack:
        broker: Redis | None = None
        try:
            broker = stack.enter_context(Redis())
        except ServerMissing as missing:
            print(f"without hints: {missing}", flush=True)
        return _on(server, broker, plan, folder)


def _on(server: Server, broker: Redis | None, plan: Plan, folder: Path) -> Findings:
    os.environ |= {"DATABASE_URL": server.url, "DJANGO_SETTINGS_MODULE": SETTINGS}
    os.environ["RESOURCEPOOL_HINTS"] = "" if broker is None else broker.url
    django.setup()
    from tests.chaos.wire import Wire

    _make(plan)
    path = folder / "evidence"
    log = Log(path, who=0)
    with StreamWire.of(Wire, server, plan, path) as wire:
        url = urlsplit(server.url)
        through = url._replace(netloc=url.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
        with _fleet(log, path, plan, through) as fleet:
            with contextlib.suppress(KeyboardInterrupt):
                _until_done(plan, fleet, Misfortunes(plan, fleet, wire, server, broker), Submitter(plan))
            fleet.leave()
    from resourcepool.models import Task
    from tests.chaos.models import Step

    steps = Step._default_manager.order_by("pk").values_list("page", "before", "fence")
    done = Task.objects.filter(state=Task.State.DONE).count()
    return examine(log.events(), [Written(*step) for step in steps], plan.tasks, done)


class StreamWire:
    """How the relay recognises the statements of streams."""

    kinds = {
        "guard": ("UPDATE RESOURCEPOOL_STREAM SET BUSY_BEFORE",) * 2,
        "task": ("UPDATE RESOURCEPOOL_TASK SET",) * 2,
        "commit": ("COMMIT",) * 2,
        "any": ("",) * 2,
    }

    @classmethod
    def of(cls, wire: "type[Wire]", server: Server, plan: Plan, path: Path) -> "Wire":
        """Return a relay to this server."""
        made = type("StreamWire", (wire,), {"kinds": cls.kinds})
        found: Wire = made(server.port, plan.database, path, plan.seed)
        return found


def _fleet(log: Log, path: Path, plan: Plan, url: str) -> "Fleet":
    from tests.chaos.fleet import Fleet

    class Consumers(Fleet):
        worker = "tests.taskqueue.proof.worker:Worker"

    return Consumers(log, path, plan.seed, {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS})


class Misfortunes:
    """What befalls the consumers and their database, one thing at a time."""

    def __init__(self, plan: Plan, fleet: "Fleet", wire: "Wire", server: Server, broker: Redis | None) -> None:
        self._chance = random.Random(f"{plan.seed}/misfortunes")
        self._fleet, self._wire, self._server, self._broker = fleet, wire, server, broker
        # At once, so that a short run has it, too.
        self._acts: list[Callable[[], None]] = [] if broker is None else [partial(self._restart_broker, broker)]

    def next(self) -> None:
        """Have the next one happen; each kind comes before one of them comes again."""
        if not self._acts:
            self._acts = [self._kill, self._kill, self._pause, self._restart, self._cut, self._lose, self._lose]
            if self._broker is not None:
                self._acts.append(partial(self._restart_broker, self._broker))
            self._chance.shuffle(self._acts)
        self._acts.pop()()

    def _leader(self) -> "Member | None":
        from resourcepool.models import Stream

        holder = Stream.objects.get().holder
        running = self._fleet.running()
        return next(
            (member for member in running if f"-{member.pid}-" in holder or str(member.pid) in holder), None
        )

    def _kill(self) -> None:
        if (leader := self._leader()) is not None:
            self._fleet.kill(leader)

    def _pause(self) -> None:
        if (leader := self._leader()) is not None:
            self._fleet.stop(leader, 2 * TERM_TTL)

    def _restart(self) -> None:
        from django.db import connection

        connection.close()
        self._server.kill()
        time.sleep(OUTAGE)
        self._server.start()

    def _restart_broker(self, broker: Redis) -> None:
        broker.kill()
        self._fleet.log.tell("broker_killed")
        time.sleep(OUTAGE)
        broker.start()

    def _cut(self) -> None:
        self._wire.cut()

    def _lose(self) -> None:
        self._wire.lose(self._chance.choice(LOST))


def _make(plan: Plan) -> None:
    from django.core.management import call_command
    from django.db import connection

    from resourcepool.models import Stream

    call_command("migrate", verbosity=0, run_syncdb=True)
    options = {"retries": 1_000, "retry_delay": 0.05, "max_crashes": 100}
    Stream.objects.create(name=STREAM, term_ttl=TERM_TTL, lanes=plan.lanes, **options)
    connection.close()


class Submitter:
    """Submits the tasks in their order, half of them at the beginning, the others a few at a time during the run."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._next = plan, 0

    @property
    def left(self) -> int:
        """How many tasks have yet to be submitted."""
        return self._plan.tasks - self._next

    def next(self) -> None:
        """Submit the next ones, and the last ones again, as after an error that left open whether they were added."""
        from resourcepool.taskqueue import NewTask, submit_many

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


def _until_done(plan: Plan, fleet: "Fleet", misfortunes: Misfortunes, submitter: Submitter) -> None:
    from django.db import DatabaseError, InterfaceError

    from resourcepool.exceptions import DatabaseUnavailable

    for _ in range(CONSUMERS):
        fleet.start()
    left, changed_at, next_at = -1, time.monotonic(), time.monotonic() + plan.every
    while (left or submitter.left) and time.monotonic() < changed_at + PATIENCE:
        fleet.go_on()
        _replace_the_dead(fleet)
        try:
            if time.monotonic() > next_at:
                misfortunes.next()
                next_at = time.monotonic() + plan.every
            if submitter.left:
                submitter.next()
            now_left = _unfinished()
        except (DatabaseError, InterfaceError, DatabaseUnavailable):
            continue
        if now_left != left:
            left, changed_at = now_left, time.monotonic()
        time.sleep(MEMBERS_LOOKED_AT)


def _unfinished() -> int:
    from django.db import DatabaseError, connection

    from resourcepool.models import Task

    try:
        return int(Task.objects.unfinished().count())
    except DatabaseError:
        connection.close()
        raise


def _replace_the_dead(fleet: "Fleet") -> None:
    """A consumer ends its own process when it has lost the lead in the middle of a task."""
    from tests.chaos.fleet import _lives

    for member in [member for member in fleet.members if not _lives(member.pid)]:
        fleet.log.tell("ended_itself", member.number)
        fleet.members.remove(member)
        fleet.start()
