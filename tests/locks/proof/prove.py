"""The guards that are removed one at a time, to see that the checker objects."""

from tests.locks.proof.judge import BESIDE, FENCE, LOST, MISSED, OVER, TWO, UNEXPECTED
from tests.proof.cases import known, own

WORDS = ("--seconds", "25", "--every", "0.7")
CASES = (
    known("expiry out of claim", TWO, OVER, BESIDE),
    known("semaphores: all or none", OVER, UNEXPECTED),
    own(
        "a writer: the database says how many permits there are",
        "locks/permits.py",
        "counted[self.key] = count",
        "counted[self.key] = count = min(count, self.permits)",
        BESIDE,
    ),
    known("a writer's fence is that of any row", FENCE),
    own(
        "conditions: in line before the lock is free",
        "waiting/acquire.py",
        "        begun = await mode.call(begin,",
        "        if on_enqueued:\n"
        "            await on_enqueued(mode)\n"
        "            on_enqueued = None\n"
        "            __import__('time').sleep(0.05)  # as on a slow machine\n"
        "        begun = await mode.call(begin,",
        MISSED,
    ),
    known("conditions: a notification is used up", LOST),
    known("conditions: what was notified is not waiting any more", UNEXPECTED, LOST),
    own(
        "conditions: it is used up only once the lock is taken back",
        "locks/condition.py",
        "notified = await acquire(mode, self, self._wait_request(seconds), on_enqueued=release)",
        "notified = await acquire(mode, self, self._wait_request(seconds), on_enqueued=release)\n"
        "                consume(notified)",
        LOST,
    ),
    own(
        "conditions: what a dead waiter was given passes on",
        "waiting/scan.py",
        "for selector in {waiter.request.selector for waiter in mine}:",
        "for selector in {waiter.request.selector for waiter in mine if not waiter.request.fifo_once}:",
        LOST,
    ),
)
