"""The scheduler: real threads of which exactly one runs; they pass a baton whenever a statement is about to run.

All decisions come from random numbers, so the seed determines the schedule.
"""

import math
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Memory = dict[Any, dict[str, Any]]

TICKS = (1, 1, 2, 5, 20, 50, 100, 150, 300, 700, 1_500, 2_500)  # milliseconds that may pass between two steps
PAUSES = (150, 400, 950, 1_100, 2_100, 4_500)
OUTAGES = (50, 400, 1_000, 4_000)
FOR_EVER = 1_000_000_000  # milliseconds


class Crashed(BaseException):
    """Unwinds a thread of a killed process, or of a finished schedule; it sends no more statements."""


class Process:
    """A simulated process: its own clock, and the memory that real processes do not share."""

    def __init__(self, name: str, offset: float, rate: float, memory: Memory) -> None:
        self.name, self.is_dead, self.paused_until = name, False, 0
        self._offset, self._rate, self._memory = offset, rate, memory

    def monotonic(self, now: int) -> float:
        """Return this process's clock, in seconds, at a time of the database's clock."""
        return self._offset + self._rate * now / 1_000

    def swap_in(self) -> None:
        """Swap in this process's memory."""
        for owner, attributes in self._memory.items():
            owner.__dict__ = attributes


class Worker(threading.Thread):
    """A real thread that plays one actor after another, and runs only while it has the baton."""

    def __init__(self, number: int) -> None:
        super().__init__(name=f"worker-{number}", daemon=True)
        self.baton = threading.Lock()
        self.baton.acquire()
        self.driver: Any = None  # its connection to SQLite, once it has one
        self.play: Callable[[], None] = lambda: None
        self.start()

    def run(self) -> None:
        while True:
            self.baton.acquire()
            self.play()


@dataclass(eq=False, slots=True)
class Actor:
    """One thread of a process, and its current operation."""

    process: Process
    name: str
    program: Callable[[], None]
    worker: Worker
    wake_at: int = 0
    until: Callable[[], bool] | None = None  # wakes it earlier
    wrote_at: int = 0  # when its last statement ran that changed rows; the commit may come later
    gave_at: int = 0  # the same for tickets
    operation: Any = None
    is_done: bool = False

    def may_run(self, now: int) -> bool:
        return self.process.is_dead or self.runs_at(now) <= now

    def runs_at(self, now: int) -> int:
        """Return when it continues, as far as is known now."""
        is_woken = self.until is not None and self.until()
        return max(now if is_woken else self.wake_at, self.process.paused_until)


@dataclass(frozen=True, slots=True)
class Habits:
    """The probabilities of one schedule, at each step."""

    stay: float = 1.0  # that the same thread goes on
    tick: float = 0.0  # that time passes
    pause: float = 0.0  # probability that the process pauses
    crash: float = 0.0
    cut: float = 0.0  # that a statement's connection breaks, before or after it took effect
    outage: float = 0.0  # that the server then stays away for a while
    deaf: float = 0.0  # that a notice, or a hint, is lost
    hinted: bool = False  # processes send each other hints
    ticks: tuple[int, ...] = TICKS

    @classmethod
    def drawn(cls, rng: random.Random, ticks: tuple[int, ...] = TICKS) -> "Habits":
        return cls(
            ticks=ticks,
            stay=rng.choice((0.2, 0.5, 0.8)),
            tick=rng.choice((0.05, 0.2, 0.5)),
            pause=rng.choice((0.0, 0.02, 0.08, 0.2)),
            crash=rng.choice((0.0, 0.0, 0.0, 0.01, 0.03)),
            cut=rng.choice((0.0, 0.0, 0.0, 0.03, 0.1, 0.3)),
            outage=rng.choice((0.0, 0.5)),
            deaf=rng.choice((0.0, 0.3, 1.0)),
            hinted=rng.random() < 0.3,
        )


@dataclass(eq=False)
class Schedule:
    """One run of some actors, from the first step to the last."""

    rng: random.Random
    habits: Habits
    now: int
    watch: Callable[[], None]  # called whenever time may have passed
    trace: list[str] | None = None
    actors: list[Actor] = field(default_factory=list)
    violation: str = ""
    steps: int = 0
    down_until: int = 0  # the server is not there

    def run(self) -> None:
        """Play all actors to their end."""
        stage.running = self
        self._over = threading.Lock()
        self._over.acquire()
        for actor in self.actors:
            actor.worker.play = lambda actor=actor: self._play(actor)  # type: ignore[misc]
        self.current = self.actors[0]
        self._wake(self.current)
        self._over.acquire()
        stage.running = None

    def turn(self) -> None:
        """Let time pass and faults happen between two steps of the current thread; raises Crashed."""
        me, rng, habits = self.current, self.rng, self.habits
        self._raise_if_over(me)
        if rng.random() < habits.tick:
            self.now += rng.choice(habits.ticks)
        luck = rng.random()
        if luck < habits.crash:
            self.note("is killed")
            self._kill(me.process)
        elif luck < habits.crash + habits.pause:
            me.process.paused_until = self.now + rng.choice(PAUSES)
            self.note(f"is paused until {me.process.paused_until}")
        self._let_somebody_run(me)

    def sleep(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Let the current thread sleep, by the database's clock, or until ``until()``."""
        me = self.current
        me.wake_at, me.until = self.now + math.ceil(min(seconds * 1_000, FOR_EVER)), until
        self._let_somebody_run(me)
        me.wake_at, me.until = self.now, None

    def is_heard(self) -> bool:
        """Decide whether a wake-up arrives."""
        return self.habits.deaf == 0.0 or self.rng.random() >= self.habits.deaf

    def breaks(self) -> str:
        """Decide whether the connection of the next statement breaks: "", "before" or "after" it takes effect."""
        if self.now < self.down_until:
            return "before"
        if self.habits.cut == 0.0 or (luck := self.rng.random()) >= self.habits.cut:
            return ""
        if self.rng.random() < self.habits.outage:
            self.down_until = self.now + self.rng.choice(OUTAGES)
        return "before" if luck < self.habits.cut / 3 else "after"

    def blame(self, what: str) -> None:
        """Note a violated invariant, and end the schedule; raises Crashed."""
        self.violation = self.violation or _repeatable(what)
        raise Crashed

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.now:>7} ms  {self.current.name:<9} {_repeatable(what)}")

    def monotonic(self) -> float:
        """Return the clock of the current process."""
        return self.current.process.monotonic(self.now)

    def _let_somebody_run(self, me: Actor) -> None:
        chosen = self._choose(me)
        if chosen is not me:
            self._wake(chosen)
            me.worker.baton.acquire()
        self._raise_if_over(me)

    def _choose(self, me: Actor | None) -> Actor:
        alive = [actor for actor in self.actors if not actor.is_done]
        if not self.violation:
            ready = [actor for actor in alive if actor.may_run(self.now)]
            if not ready:
                self.now = min(actor.runs_at(self.now) for actor in alive)
                ready = [actor for actor in alive if actor.may_run(self.now)]
            alive = ready
            self.watch()
        if me in alive and self.rng.random() < self.habits.stay:
            return me
        return alive[0] if len(alive) == 1 else self.rng.choice(alive)

    def _wake(self, actor: Actor) -> None:
        self.current = actor
        actor.process.swap_in()
        actor.worker.baton.release()

    def _play(self, actor: Actor) -> None:
        try:
            actor.program()
        except Crashed:
            pass
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is not documented)
            self.violation = self.violation or f"undocumented: {error!r} out of {actor.operation}"
        actor.is_done = True
        if actor.worker.driver is not None:
            actor.worker.driver.end_transaction()
        self._leave()

    def _leave(self) -> None:
        if all(actor.is_done for actor in self.actors):
            self._over.release()
            return
        try:
            self._wake(self._choose(None))
        except Crashed:  # a violation came to light
            self._wake(self._choose(None))

    def _kill(self, process: Process) -> None:
        process.is_dead = True
        for actor in self.actors:
            if actor.process is process and actor.worker.driver is not None:
                actor.worker.driver.roll_back_for_good()

    def _raise_if_over(self, me: Actor) -> None:
        if me.process.is_dead or self.violation:
            raise Crashed


def _repeatable(words: str) -> str:
    """Remove process-specific parts, such as default holder names."""
    return words.replace(f"/{os.getpid()}/", "/pid/")


class Stage:
    """Holds the schedule that is being played."""

    running: Schedule | None = None


stage = Stage()


def now_running() -> Schedule:
    """Return the schedule that is being played."""
    assert stage.running is not None
    return stage.running


def replace_clocks() -> None:
    """Replace all clocks of this process; call it before the package is imported, which keeps a reference to one."""
    time.monotonic = time.clock_gettime = _monotonic


def _monotonic(*_: int) -> float:
    return stage.running.monotonic() if stage.running is not None else time.perf_counter()
