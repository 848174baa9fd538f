"""A loop sleeps on a wakeup; other threads bring it forward."""

from functools import partial

from resourcepool.clock import monotonic
from resourcepool.db.threads import Wakeup
from tests.eventually import InBackground
from tests.interruptions import at_each_line

FILES = ("resourcepool/db/threads.py", "/threading.py", "/queue.py")


def test_a_ring_ends_the_sleep_and_one_before_the_sleep_prevents_it() -> None:
    wakeup = Wakeup()
    wakeup.wake()
    wakeup.sleep_until(float("inf"))
    wakeup.reset()
    sleeper = InBackground(wakeup.sleep_until, float("inf"))
    wakeup.wake()
    sleeper.result()


def test_an_earlier_moment_is_kept_and_a_later_one_ignored() -> None:
    wakeup = Wakeup()
    soon = monotonic() + 0.05
    wakeup.bring_forward(soon)
    wakeup.bring_forward(soon + 100)
    wakeup.reset()
    wakeup.sleep_until(float("inf"))
    assert soon <= monotonic() < soon + 50


def test_a_moment_that_was_asked_for_is_told_the_loop_only_once_however_often_it_is_asked_for() -> None:
    """A thousand short leases must not wake the keeper a thousand times."""
    wakeup, moment = Wakeup(), monotonic() + 60
    wakeup.bring_forward(moment)
    assert wakeup._requests.qsize() == 1
    for later in range(1_000):
        wakeup.reset()
        wakeup.bring_forward(moment + later)
        assert wakeup._requests.empty()
    wakeup.bring_forward(moment - 1)
    assert wakeup._requests.qsize() == 1


def test_whoever_is_interrupted_anywhere_while_asking_leaves_an_alarm_that_works() -> None:
    """A signal handler that raises between the parts of an Event.set() leaves its lock taken: the next one hangs."""
    for ask in (Wakeup.wake, lambda wakeup: wakeup.bring_forward(monotonic())):
        wakeup = Wakeup()
        for _ in at_each_line(partial(ask, wakeup), files=FILES, since=()):
            wakeup.wake()
            wakeup.sleep_until(float("inf"))
            wakeup.reset()
            assert wakeup.next_at == float("inf")


def test_a_moment_that_has_come_is_forgotten() -> None:
    wakeup = Wakeup()
    wakeup.bring_forward(monotonic())
    wakeup.reset()
    assert wakeup.next_at == float("inf")
