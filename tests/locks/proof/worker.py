"""One worker: takes locks, permits and turns at a buffer, and notes in the log what it had and when."""

import contextlib
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import Error, IntegrityError, connection, transaction

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, UpgradeConflict
from resourcepool.locks import Hold, Lock, RWLock, Semaphore
from resourcepool.models import RWLockPermit
from tests.chaos.models import Step
from tests.concurrency.evidence import Log
from tests.locks.proof import terms
from tests.locks.proof.conditions import NotedCondition, note_notifications

# Seconds that something is held. Those of middling length are seen together with what must not be beside them.
SHORT, MIDDLING, LONG = (0.0, 0.02), (0.03, 0.15), (0.5, 1.5 * terms.TTL)
SHARES = (0.79, 0.205, 0.005)
# Seconds: long enough to see what the dead had come free; then it does something else.
PATIENCE = 1.5 * terms.TTL
WAITS = (0.05, 0.3, 1.0, PATIENCE)  # seconds for a condition: many end just when it is notified
# How often each of them; who upgrades, or finds the permits made anew, waits for up to 2 s.
TURNS = 4, 3, 3, 1, 3


class Worker:
    """Works until SIGTERM."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.log, self.chance = Log(path, who=number), random.Random(f"{seed}/{number}")
        self.number, self.spans, self.is_leaving = number, 0, False
        self.produces = self.chance.random() < 0.5
        self.buffer = Lock(terms.BUFFER, ttl=terms.TTL, timeout=PATIENCE)
        note_notifications(self.log)
        self.not_empty = NotedCondition(self.buffer, terms.NOT_EMPTY, self.log, self.chance)
        self.not_full = NotedCondition(self.buffer, terms.NOT_FULL, self.log, self.chance)

    def work(self) -> None:
        signal.signal(signal.SIGTERM, self._leave)
        turns = (self._lock, self._semaphore, self._read, self._write, self._pass_on)
        while not self.is_leaving:
            try:
                self.chance.choices(turns, TURNS)[0]()
            except (AcquireTimeout, LeaseLost, UpgradeConflict) as error:
                self.log.tell(type(error).__name__.lower())
            except DatabaseUnavailable:
                self.log.tell("unavailable")
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001 (the judge decides what may be raised)
                connection.close()
                if isinstance(error, Error) and not isinstance(error, IntegrityError):
                    continue  # of a transaction of this worker's own
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                time.sleep(0.2)
        self.log.tell("left")

    def _leave(self, *_: Any) -> None:
        self.is_leaving = True

    @contextlib.contextmanager
    def _noted(self, hold: Hold, what: str, count: int = 1) -> Iterator[None]:
        """Note from when to when it was certainly held: each moment is one before a look at the handle."""
        self.spans += 1
        self._note(hold, "begun", what, count)
        yield
        with contextlib.suppress(LeaseLost):
            self._note(hold, "held", what, count)

    def _note(self, hold: Hold, word: str, what: str, count: int) -> None:
        now = time.monotonic()
        hold.ensure_held()
        self.log.tell(word, at=now, pk=self.spans, fence=hold.fence, text=f"{what} {count}")

    def _use(self) -> None:
        (span,) = self.chance.choices((SHORT, MIDDLING, LONG), SHARES)
        time.sleep(self.chance.uniform(*span))

    def _lock(self) -> None:
        page = self.chance.randrange(terms.LOCKS)
        lock = Lock(f"{terms.LOCK}-{page}", ttl=terms.TTL, timeout=PATIENCE)
        with lock as hold, self._noted(hold, lock.name):
            self._use()
            if self.chance.random() < 0.3:
                with lock:  # once more
                    self._write_down(hold, page)

    def _write_down(self, hold: Hold, page: int) -> None:
        with transaction.atomic(), hold.guard():
            last = Step._default_manager.filter(page=page).order_by("pk").last()
            Step._default_manager.create(page=page, before=last.fence if last else 0, fence=hold.fence)

    def _semaphore(self) -> None:
        semaphore = Semaphore(terms.SEMAPHORE, terms.PERMITS, ttl=terms.TTL, timeout=PATIENCE)
        count = self.chance.randint(1, terms.PERMITS)
        hold = semaphore.acquire(n=count)
        if hold is None:
            return
        try:
            with self._noted(hold, terms.SEMAPHORE, count):
                self._use()
        finally:
            semaphore.release(count)

    @property
    def _catalogue(self) -> RWLock:
        return RWLock(terms.RWLOCK, readers=terms.READERS[0], ttl=terms.TTL, timeout=PATIENCE)

    def _read(self) -> None:
        lock = self._catalogue
        with lock.read() as hold:
            with self._noted(hold, "read"):
                self._use()
                is_writing = self.chance.random() < 0.05 and lock.upgrade(timeout=1) is not None
            if is_writing:  # as it read: nobody has written in between
                self.log.tell("upgraded")
                with self._noted(hold, "write"):
                    self._use()

    def _write(self) -> None:
        lock = self._catalogue
        with lock.write() as hold:
            with self._noted(hold, "write"):
                self._use()
            way = self.chance.random()
            if way < 0.4:
                self._make_again(hold)
            elif way < 0.8:
                with self._noted(hold, "read"):  # begun before others can read
                    lock.downgrade()
                    self._use()

    def _make_again(self, hold: Hold) -> None:
        """Remove the permits, and make more of them, or fewer, while others wait for as many as there were."""
        (number,) = {*terms.READERS} - {len(hold.leases)}
        keys = [RWLockPermit.key_of(terms.RWLOCK, one) for one in range(number)]
        with transaction.atomic(), hold.guard():
            RWLockPermit.objects.filter(name=terms.RWLOCK).delete()
            RWLockPermit.objects.bulk_create(RWLockPermit(key=key, name=terms.RWLOCK) for key in keys)
        self.log.tell("made_again")

    def _pass_on(self) -> None:
        """Put something into the buffer, or take something out: in turn, so that it is not full for long."""
        (self._produce if self.produces else self._consume)()

    def _produce(self) -> None:
        with self.buffer as hold:
            wait = self.chance.choice(WAITS)
            if not self.not_full.wait_for(lambda: len(self._items()) < terms.CAPACITY, wait):
                return
            with self._noted(hold, terms.BUFFER):
                self._use()
            with self._step(hold, self.not_empty):
                last = Step._default_manager.filter(page=terms.PRODUCED).order_by("pk").last()
                number = last.before + 1 if last else 1
                Step._default_manager.create(page=terms.PRODUCED, before=number, fence=hold.fence)
            self.produces = False

    def _consume(self) -> None:
        with self.buffer as hold:
            if not self.not_empty.wait_for(self._items, self.chance.choice(WAITS)):
                return
            with self._noted(hold, terms.BUFFER):
                self._use()
            with self._step(hold, self.not_full):
                Step._default_manager.create(page=terms.CONSUMED, before=self._items()[0], fence=hold.fence)
            self.produces = True

    @contextlib.contextmanager
    def _step(self, hold: Hold, condition: NotedCondition) -> Iterator[None]:
        """Notify in the transaction of the block, or after it."""
        is_within = self.chance.random() < 0.5
        with transaction.atomic(), hold.guard():
            yield
            if is_within:
                condition.notify()
        if not is_within:
            condition.notify()

    def _items(self) -> list[int]:
        """Return what is in the buffer."""
        numbers = Step._default_manager.order_by("pk").values_list("before", flat=True)
        taken = numbers.filter(page=terms.CONSUMED).count()
        return list(numbers.filter(page=terms.PRODUCED)[taken:])
