"""One loop sleeps on an alarm; others bring it forward."""

from functools import partial

from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from tests.eventually import InBackground
from tests.interruptions import at_each_line

FILES = ("resourcepool/database/wakeup.py", "/threading.py", "/queue.py")


def test_a_ring_ends_the_sleep_and_one_before_the_sleep_prevents_it() -> None:
    alarm = Wakeup()
    alarm.ring()
    alarm.sleep_until(float("inf"))
    alarm.reset()
    sleeper = InBackground(alarm.sleep_until, float("inf"))
    alarm.ring()
    sleeper.result()


def test_an_earlier_moment_is_kept_and_a_later_one_ignored() -> None:
    alarm = Wakeup()
    soon = monotonic() + 0.05
    alarm.bring_forward(soon)
    alarm.bring_forward(soon + 100)
    alarm.reset()
    alarm.sleep_until(float("inf"))
    assert soon <= monotonic() < soon + 50


def test_a_moment_that_was_asked_for_is_told_the_loop_only_once_however_often_it_is_asked_for() -> None:
    """A thousand short leases must not wake the keeper a thousand times."""
    alarm, moment = Wakeup(), monotonic() + 60
    alarm.bring_forward(moment)
    assert alarm._asked.qsize() == 1
    for later in range(1_000):
        alarm.reset()
        alarm.bring_forward(moment + later)
        assert alarm._asked.empty()
    alarm.bring_forward(moment - 1)
    assert alarm._asked.qsize() == 1


def test_whoever_is_interrupted_anywhere_while_asking_leaves_an_alarm_that_works() -> None:
    """A signal handler that raises between the parts of an Event.set() leaves its lock taken: the next one hangs."""
    for ask in (Wakeup.ring, lambda alarm: alarm.bring_forward(monotonic())):
        alarm = Wakeup()
        for _ in at_each_line(partial(ask, alarm), files=FILES, since=()):
            alarm.ring()
            alarm.sleep_until(float("inf"))
            alarm.reset()
            assert alarm.asked_for == float("inf")


def test_a_moment_that_has_come_is_forgotten() -> None:
    alarm = Wakeup()
    alarm.bring_forward(monotonic())
    alarm.reset()
    assert alarm.asked_for == float("inf")
