"""Threads of one process that are synchronized only by a lease."""

import time

from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.eventually import at_once

THREADS, ROUNDS = 8, 12


class Counter:
    """Loses an increment whenever two threads are inside ``increment`` at once."""

    def __init__(self) -> None:
        self.value = 0

    def increment(self) -> None:
        before = self.value
        time.sleep(0.001)  # wide enough for everybody to come in between
        self.value = before + 1


def test_eight_threads_count_exactly_under_a_lease() -> None:
    row, counter = new(Proxy), Counter()

    def count(_: int) -> None:
        for _ in range(ROUNDS):
            with Proxy.pool.lease(timeout=30):
                counter.increment()

    at_once(THREADS, count)
    assert counter.value == THREADS * ROUNDS
    # One for each hand-over, two for each release and claim.
    assert THREADS * ROUNDS < columns(row)["fence"] <= 2 * THREADS * ROUNDS
