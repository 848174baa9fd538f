"""Plays the schedule of one seed from an empty table to the last expiry."""

import random
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, connections

from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.models import Proxy
from tests.simulation import environment, schedule, verdict
from tests.simulation.background import Background
from tests.simulation.clients import Client
from tests.simulation.ledger import Ledger, Pair
from tests.simulation.operation import Held, Operation
from tests.simulation.schedule import Actor, Habits, Process, Schedule, Worker

MOST_THREADS = 12
LONG = 20_000  # milliseconds, beyond every ttl, cool-down, quarantine and pause
CALM = Habits()
LINES = 0.4  # share of the schedules with waiters that end with a line
WAITS = (0.0, 0.2, 0.9)  # weights of waiting in line among the operations of a client
IN_LINE = (1, 1, 2, 5, 20, 50, 100, 300)  # milliseconds: shorter steps, so that tickets live
NO_HURRY = (1, 2, 5, 20, 50)


@dataclass(slots=True)
class Result:
    """The result of one seed."""

    seed: int
    violation: str
    steps: int
    changes: int
    kills: int = 0
    trace: list[str] = field(default_factory=list)


class Simulation:
    """The table, the threads, and an observer with its own connection."""

    def __init__(self, file: str) -> None:
        environment.install()
        for number in range(1, 4):
            Proxy.objects.create(pk=number, host=f"p{number}", port=1)
        Proxy.objects.update(fence=0)  # small numbers keep the trace readable
        connection.close()
        self._workers = [Worker(number) for number in range(MOST_THREADS)]
        self._observer = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._rows = self._observer.execute("SELECT * FROM resourcepool_proxy ORDER BY id").fetchall()

    def play(self, seed: int, *, traced: bool = False) -> Result:
        """Play one seed; the same seed is the same schedule, statement by statement."""
        rng = random.Random(seed)
        random.seed(seed)  # the package's own jitter
        environment.begin_names()
        waits = rng.choice(WAITS)
        self._reset(rng.choice((1, 1, 2, 2, 3)))
        ledger, trace = Ledger(self._observer), [] if traced else None
        habits = Habits.drawn(rng, ticks=rng.choice((schedule.TICKS, IN_LINE)) if waits else schedule.TICKS)
        first = _Cast(ledger, rng, self._workers, habits, trace)
        first.enter_clients(waits)
        first.schedule.run()
        violation, steps, now = first.schedule.violation, first.schedule.steps, first.schedule.now
        if not violation:
            last = _Cast(ledger, rng, self._workers, CALM, trace, now + LONG)
            last.enter_settlers(first.clients)
            last.schedule.run()
            violation, steps = last.schedule.violation, steps + last.schedule.steps
            now = last.schedule.now
        if not violation and waits and rng.random() < LINES:
            habits = Habits(stay=0.5, tick=0.4, ticks=NO_HURRY, deaf=habits.deaf, hinted=habits.hinted)
            line = _Cast(ledger, rng, self._workers, habits, trace, now)
            line.enter_line()
            line.schedule.run()
            violation, steps = line.schedule.violation, steps + line.schedule.steps
        kills = sum(client.process.is_dead for client in first.clients)
        return Result(seed, violation, steps, ledger.changes, kills, trace or [])

    def _reset(self, count: int) -> None:
        places = ", ".join("?" * len(self._rows[0]))
        self._observer.execute("BEGIN")
        self._observer.execute("DELETE FROM resourcepool_proxy")
        self._observer.execute("DELETE FROM target")
        self._observer.execute("DELETE FROM resourcepool_ticket")
        self._observer.execute("DELETE FROM sqlite_sequence WHERE name = 'resourcepool_ticket'")
        self._observer.executemany(f"INSERT INTO resourcepool_proxy VALUES ({places})", self._rows[:count])
        self._observer.executemany(
            "INSERT INTO target VALUES (?, 0, 0)", [row[:1] for row in self._rows[:count]]
        )
        self._observer.execute("COMMIT")


class _Cast:
    """The processes and threads of one schedule."""

    def __init__(
        self,
        ledger: Ledger,
        rng: random.Random,
        workers: list[Worker],
        habits: Habits,
        trace: list[str] | None,
        now: int = 1_000,
    ) -> None:
        self.schedule = Schedule(rng, habits, now, self._watch, trace)
        self.clients: list[Client] = []
        self._ledger, self._rng, self._workers = ledger, rng, workers

    def enter_clients(self, waits: float) -> None:
        """Two or three processes, some with a keeper, some with two client threads."""
        rng, mail = self._rng, list[Pair]()
        for name in "ABC"[: rng.choice((2, 2, 3))]:
            process = Process(name, rng.uniform(0, 1e6), rng.uniform(0.95, 1.05), environment.memory())
            lengths = [rng.randint(2, 5 + round(3 * waits)) for _ in range(1 + (rng.random() < 0.7 * waits))]
            team = [Client(process, self._ledger, rng, mail, length) for length in lengths]
            for number, client in enumerate(team):
                client.waits = waits
                self._enter(process, f"{name}{number + 1}" if number else name, client.main)
            self.clients += team
            if rng.random() < 0.4:
                background = Background(process, self._ledger, rng, team)
                self._enter(process, f"{name}-keeper", background.keep)

    def enter_line(self) -> None:
        """Two or three new processes whose clients only wait in line."""
        rng = self._rng
        for name in "XYZ"[: rng.choice((2, 3))]:
            process = Process(name, rng.uniform(0, 1e6), rng.uniform(0.95, 1.05), environment.memory())
            team = [
                Client(process, self._ledger, rng, [], rng.choice((1, 2))) for _ in range(rng.choice((1, 2)))
            ]
            for number, client in enumerate(team):
                self._enter(process, f"{name}{number + 1}" if number else name, client.queue)

    def enter_settlers(self, clients: list[Client]) -> None:
        """The surviving processes, and a new one that must be able to claim every row."""
        for client in clients:
            if not client.process.is_dead:
                self._enter(client.process, client.process.name, client.end)
        newcomer = Process("newcomer", 0.0, 1.0, environment.memory())
        self._enter(newcomer, "newcomer", lambda: self._claim_everything(newcomer))

    def _enter(self, process: Process, name: str, program: Any) -> None:
        def play() -> None:
            _tidy(worker)
            program()

        worker = self._workers[len(self.schedule.actors)]
        self.schedule.actors.append(Actor(process, name, play, worker))

    def _watch(self) -> None:
        """(2, 5): a handle is trusted exactly while its lease is live."""
        running = self.schedule
        me = running.current
        for client in self.clients:
            if client.held and not client.process.is_dead:
                running.current = next(a for a in running.actors if a.process is client.process)
                for held in client.held:
                    self._look_at(held)
        running.current = me

    def _look_at(self, held: Held) -> None:
        if held.lease.is_held:
            if not self._ledger.is_live(held.pair, self.schedule.now):
                verdict.blame(
                    f"(2) {held.lease!r} is trusted, and the row is {self._ledger.rows[held.pair[0]]}"
                )
        elif not held.is_lost and held.lease.lost.is_set():
            verdict.noticed(self._ledger, held)

    def _claim_everything(self, process: Process) -> None:
        for pk, row in self._ledger.rows.items():
            operation = Operation("claim", process, self._ledger, ("claim",), ttl=1_000)
            wanted = Terms(ttl=1.0, holder="newcomer")
            grant = operation.run(
                lambda pk=pk, wanted=wanted: verbs.claim(connections["default"], Proxy, pk, wanted)
            )
            if (grant is not None) != row.in_service:
                verdict.blame(
                    f"(4, 6) row {row} cannot be claimed long after" if row.in_service else f"(1) {row}"
                )
        Operation("return", process, self._ledger, ("return", "give")).run(Proxy.objects.return_to_service)


def _tidy(worker: Worker) -> None:
    """Leave a working session to the next actor."""
    if worker.driver is not None and worker.driver.is_cut:
        connections["default"].close()
