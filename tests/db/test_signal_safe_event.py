"""An event works after a signal handler interrupted it."""

from resourcepool.clock import monotonic
from resourcepool.db.threads import Outcome, SignalSafeEvent, Wakeup
from tests.eventually import InBackground
from tests.interruptions import FILES, at_each_line

EVERYWHERE = [*FILES, "/threading.py"]
NEVER = float("inf")


def test_it_ends_the_wait_or_the_next_one() -> None:
    bell = SignalSafeEvent()
    assert not bell.wait(0)
    for _ in range(2):
        bell.wake()
    assert bell.wait(0)
    assert not bell.wait(0), "it is silenced"
    waiter = InBackground(bell.wait, -1)
    bell.wake()
    assert waiter.result()


def test_an_interrupted_ring_keeps_nobody_from_ringing() -> None:
    bell = SignalSafeEvent()
    for place in at_each_line(bell.wake, files=EVERYWHERE, since=()):
        bell.wake()
        assert bell.wait(0), place


def test_an_alarm_that_was_brought_forward_rings_also_if_that_was_interrupted() -> None:
    """Else it would count as brought forward, and nobody would ring."""
    wakeup = Wakeup()

    def prepare() -> None:
        wakeup.__init__()  # type: ignore[misc]

    for place in at_each_line(lambda: wakeup.bring_forward(1.0), prepare, files=EVERYWHERE, since=()):
        wakeup.bring_forward(1.0 + monotonic())
        InBackground(wakeup.sleep_until, NEVER).result()
        assert wakeup.next_at < NEVER, place


def test_an_interrupted_outcome_is_decided_by_others_or_was() -> None:
    outcome = Outcome()

    def prepare() -> None:
        outcome.__init__()  # type: ignore[misc]

    for place in at_each_line(outcome.cancel, prepare, files=EVERYWHERE, since=()):
        InBackground(outcome.serve, ["a lease"]).result()
        assert outcome.is_done, place
        assert outcome.is_cancelled == (outcome.leases == []), place
        outcome.wait(10)


def test_the_first_one_decides() -> None:
    outcome = Outcome()
    told: list[bool] = []
    outcome.add_done_callback(lambda: told.append(outcome.is_done))
    assert (outcome.is_done, outcome.leases) == (False, [])
    assert outcome.serve(["a lease"])
    assert not outcome.fail(LookupError())
    assert not outcome.cancel()
    assert outcome.result() == ["a lease"]
    assert all(told)
    assert told


def test_who_asks_to_be_told_after_the_decision_is_told_at_once() -> None:
    outcome, told = Outcome(), list[bool]()
    outcome.cancel()
    assert outcome.cancel()
    outcome.add_done_callback(lambda: told.append(True))
    assert told == [True]
