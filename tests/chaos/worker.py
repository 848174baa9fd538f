"""One worker: acquires rows, uses them, writes under ``guard``, releases them; records its observations."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases.shutdown import release_on_sigterm
from resourcepool.models import Proxy
from tests.chaos.writing import write
from tests.concurrency.evidence import Log

PATIENCE = 60.0  # seconds to wait for a row
SHORT = (0.005, 0.04)  # seconds of use
LONG = (3.5, 6.0)  # longer than the ttl: only renewals keep it
LOOK = 0.1  # seconds between two looks during a long use


class Worker:
    """Goes on until SIGTERM; every choice comes from the seed and the worker's own number."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.log = Log(path, who=number)
        self.chance = random.Random(f"{seed}/{number}")
        self.threads = 1
        self.seen: dict[tuple[int, int], float] = {}  # (row, fence): when it was known to be held last
        self.acts: dict[Callable[[], None], float] = {
            self.hold_shortly: 84.6,
            self.hold_as_a_block: 7,
            self.hold_several: 3,
            self.ask_without_waiting: 2,
            self.ask_impatiently: 1,
            self.hand_over: 1,
            self.condemn: 1,
            self.exchange: 0.5,
            self.hold_long: 0.4,
        }

    def work(self) -> None:
        release_on_sigterm()
        acts, weights = list(self.acts), list(self.acts.values())
        try:
            while True:
                self.asked_at = time.monotonic()
                (act,) = self.chance.choices(acts, weights)
                try:
                    act()
                except AcquireTimeout:
                    self.log.tell("timed_out", since=self.asked_at)
                except LeaseLost:
                    self.log.tell("lost")
                except DatabaseUnavailable:
                    self.log.tell("unavailable")
                except Exception as error:  # noqa: BLE001 (the judge decides what may be raised)
                    self.log.tell("unexpected", text=f"{act.__name__}: {type(error).__name__}: {error}")
                self.threads = max(self.threads, threading.active_count())
        finally:
            self.log.tell("left", text=str(self.threads))

    # What it does

    def hold_shortly(self) -> None:
        lease = self.acquire()
        with self.released(lease):
            self.use(lease, self.chance.uniform(*SHORT))

    def hold_as_a_block(self) -> None:
        with self.released() as kept, Proxy.pool.lease(timeout=PATIENCE) as lease:
            kept.append(lease)
            self.note("acquired", lease)
            self.use(lease, self.chance.uniform(*SHORT))

    def hold_several(self) -> None:
        count = self.chance.choice([2, 2, 3])
        self.log.tell("asks_for_many")
        leases: Any = Proxy.pool.acquire_many(count, timeout=PATIENCE)
        if len(leases) != count:
            self.log.tell("unexpected", text=f"asked for {count}, got {len(leases)}")
        with self.released(*leases):
            for lease in leases:
                self.note("acquired", lease)
            for lease in leases:
                self.use(lease, self.chance.uniform(*SHORT))

    def ask_without_waiting(self) -> None:
        lease: Any = Proxy.pool.acquire(wait=False, strategy="sticky")
        if lease is not None:
            with self.released(lease):
                self.note("acquired", lease)
                self.use(lease, self.chance.uniform(*SHORT))

    def ask_impatiently(self) -> None:
        lease = self.acquire(timeout=self.chance.uniform(0.001, 0.1))
        with self.released(lease):
            self.use(lease, self.chance.uniform(*SHORT))

    def hand_over(self) -> None:
        lease = self.acquire()
        with self.released(lease):
            fence = lease.hand_over("a successor")
        adopted = Proxy.pool.adopt(lease.pk, fence)
        with self.released(adopted):
            self.note("acquired", adopted)
            self.use(adopted, self.chance.uniform(*SHORT))

    def condemn(self) -> None:
        lease = self.acquire()
        with self.released(lease):
            self.use(lease, self.chance.uniform(*SHORT))
            lease.quarantine("chaos")

    def exchange(self) -> None:
        lease = self.acquire()
        with self.released(lease):
            before, self.asked_at = (lease.pk, lease.fence), time.monotonic()
            lease.fix("chaos", timeout=PATIENCE)
            self.note_end(*before)
            self.note("acquired", lease)
            self.use(lease, self.chance.uniform(*SHORT))

    def hold_long(self) -> None:
        lease = self.acquire()
        with self.released(lease):
            until = time.monotonic() + self.chance.uniform(*LONG)
            while time.monotonic() < until:
                self.use(lease, LOOK)

    # Of what that is made

    def acquire(self, timeout: float = PATIENCE) -> Any:
        lease: Any = Proxy.pool.acquire(timeout=timeout)
        try:
            self.note("acquired", lease)
        except BaseException:
            self.give_back(lease)
            raise
        return lease

    def use(self, lease: Any, seconds: float) -> None:
        """Use it for so long, looking before and after; write now and then."""
        self.note("using", lease)
        if self.chance.random() < 0.15:
            write(self.log, self.chance, lease)
        time.sleep(seconds)
        self.note("using", lease)

    @contextmanager
    def released(self, *leases: Any) -> Iterator[list[Any]]:
        """Give these back at the end, whatever happens."""
        kept = [lease for lease in leases if lease is not None]
        try:
            yield kept
        finally:
            for lease in kept:
                self.give_back(lease)

    def give_back(self, lease: Any) -> None:
        """Release, however long it takes; also what was lost, for that must not harm whoever has it now."""
        while True:
            try:
                lease.release()
                break
            except DatabaseUnavailable:
                self.log.tell("unavailable")
            except LeaseReleased:
                break  # by the block, or handed over, or condemned
            except LeaseLost:
                self.seen.pop((lease.pk, lease.fence), None)
                self.log.tell("lost", pk=lease.pk, fence=lease.fence)
                return
        self.note_end(lease.pk, lease.fence)

    def note(self, what: str, lease: Any) -> None:
        """Note it in the log if the lease is held; raises LeaseLost if not.

        SIGTERM may come between any two lines: what is in the log as used is never over before that.
        """
        at, grant = time.monotonic(), (lease.pk, lease.fence)
        lease.ensure_held()
        if grant in self.seen:
            self.seen[grant] = at
        self.log.tell(what, at=at, pk=lease.pk, fence=lease.fence, since=self.asked_at)
        self.seen[grant] = at

    def note_end(self, pk: int, fence: int) -> None:
        """Note that the grant is over since it was last seen; what happened after that is not known so exactly."""
        at = self.seen.pop((pk, fence), None)
        if at is not None:
            self.log.tell("releasing", at=at, pk=pk, fence=fence)
