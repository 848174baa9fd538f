"""The time window in which a handle trusts its grant."""

import logging
import math
from typing import Any

import pytest

from resourcepool.leases.keeper import keeper, must_begin_by, unreferenced
from resourcepool.leases.terms import MIN_TTL, Terms, Trust
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.committed import Clock
from tests.eventually import eventually
from tests.waiting.threads import waiting

GRANTED = 1_000.0


def trust(ttl: float = 60, max_hold: float | None = None, *, is_proven: bool = True) -> Trust:
    return Trust(Terms(ttl=ttl, holder="me", max_hold=max_hold), GRANTED, is_proven=is_proven)


@pytest.mark.parametrize(
    ("ttl", "max_hold", "seconds"),
    [
        (10, None, 9),  # a tenth before
        (60, None, 58),  # but 2 s at most
        (60, 600, 58),
        (60, 30, 28),
        (10, 10, 9),
    ],
)
def test_ends_a_margin_before_ttl_and_max_hold(ttl: float, max_hold: float | None, seconds: float) -> None:
    assert trust(ttl, max_hold).until == GRANTED + seconds


def test_goes_on_from_when_a_confirmed_renewal_was_sent() -> None:
    it = trust()
    it.confirm(GRANTED + 20)
    assert (it.until, it.due_at) == (GRANTED + 78, GRANTED + 40)


def test_is_not_shortened_by_a_confirmation_that_comes_late() -> None:
    it = trust()
    it.confirm(GRANTED + 20)
    it.confirm(GRANTED + 5)
    assert it.sent_at == GRANTED + 20


def test_a_renewal_does_not_move_max_hold() -> None:
    it = trust(60, 70)
    it.confirm(GRANTED + 40)
    assert it.until == GRANTED + 68


def test_is_renewed_after_a_third_of_the_ttl_and_at_once_when_a_rollback_could_undo_the_claim() -> None:
    assert trust().due_at == GRANTED + 20
    unproven = trust(is_proven=False)
    assert unproven.due_at < GRANTED
    unproven.confirm(GRANTED + 1)
    assert unproven.due_at == GRANTED + 21


class TestAGrantThatLastsShorterAtFirst:
    """As what was handed over to a waiter does."""

    def begun(self, first: float, max_hold: float | None = None) -> Trust:
        return Trust(Terms(ttl=60, holder="me", max_hold=max_hold), GRANTED, is_proven=True, first_ttl=first)

    def test_is_relied_on_only_for_so_long(self) -> None:
        assert self.begun(6).until == pytest.approx(GRANTED + 5.4)
        assert self.begun(600).until == GRANTED + 58, "not for longer than its ttl"
        assert self.begun(6, max_hold=4).until == GRANTED + 2

    def test_is_renewed_in_time_and_then_lasts_its_ttl(self) -> None:
        it = self.begun(6)
        assert it.due_at == GRANTED + 2
        it.confirm(GRANTED + 2)
        assert (it.until, it.due_at) == (GRANTED + 60, GRANTED + 22)

    def test_says_how_long_it_lasted(self) -> None:
        assert self.begun(6).end_reason(GRANTED + 6) == "not renewed within 6 s"


@pytest.mark.parametrize(
    ("max_hold", "after", "ttl"), [(None, 500, 60), (600, 0, 60), (600, 550, 50), (600, 601, 0)]
)
def test_is_not_renewed_beyond_max_hold(max_hold: float | None, after: float, ttl: float) -> None:
    assert trust(60, max_hold).next_ttl(GRANTED + after) == ttl


@pytest.mark.parametrize(
    ("max_hold", "after", "why"),
    [
        (None, 58, "not renewed within ttl=60 s"),
        (600, 58, "not renewed within ttl=60 s"),
        (600, 598, "held for max_hold=600 s"),
    ],
)
def test_says_why_it_is_over(max_hold: float | None, after: float, why: str) -> None:
    assert trust(60, max_hold).end_reason(GRANTED + after) == why


class TestTheTimeThatRenewalsLeaveToOtherWork:
    def test_is_half_of_the_time_between_the_moment_it_is_due_and_the_loss(self) -> None:
        assert must_begin_by(GRANTED, [trust(60)]) == GRANTED + (20 + 58) / 2
        assert must_begin_by(GRANTED, [trust(60), trust(1)]) == pytest.approx(GRANTED + (1 / 3 + 0.9) / 2)

    def test_is_half_of_what_is_left_if_it_is_overdue(self) -> None:
        assert must_begin_by(GRANTED + 40, [trust(60)]) == GRANTED + (40 + 58) / 2
        assert must_begin_by(GRANTED + 2, [trust(60, is_proven=False)]) == GRANTED + (2 + 58) / 2

    def test_is_unlimited_without_a_lease_to_renew(self) -> None:
        assert must_begin_by(GRANTED, []) == math.inf
        assert must_begin_by(GRANTED + 58, [trust(60)]) == math.inf, "it is lost"

    def test_is_never_too_short_for_a_server_that_answers(self) -> None:
        assert must_begin_by(GRANTED + 57.99, [trust(60)]) == GRANTED + 57.99 + MIN_TTL / 2

    @pytest.mark.parametrize("ttl", [1, 5, 60, 3_600])
    def test_leaves_a_quarter_of_the_ttl_for_the_renewal(self, ttl: float) -> None:
        for begun in (0, ttl / 10, ttl / 3):
            assert must_begin_by(GRANTED + begun, [trust(ttl)]) <= GRANTED + 0.75 * ttl


# Leaked leases are reported, with the line that acquired them.


__all__ = ["waiting"]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "leaked" in record.getMessage()]


def test_a_handle_that_nobody_has_any_more_is_reported_once_and_still_renewed(
    proxy: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "resourcepool"):
        forget_one()
        while not reports(
            caplog
        ):  # whoever looks at all leases just then has the handle, too: a beat later nobody has
            pass_a_beat(process_clock)
        for _ in range(3):
            pass_a_beat(process_clock)
    (told,) = reports(caplog)
    assert "no code refers to its handle, acquired at " in told
    assert "test_trust.py" in told
    assert told.endswith(" in forget_one")


def pass_a_beat(clock: Clock) -> None:
    """Let time pass until every lease is due, and wait until all are renewed."""
    clock.advance(25)
    eventually(lambda: all(lease._trust.due_at > clock() for lease in keeper.leases()))


def forget_one() -> None:
    Proxy.pool.acquire(ttl=60)


def test_what_somebody_still_has_is_not_reported(
    proxy: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    somewhere = {"deep": [Proxy.pool.acquire(ttl=60)]}
    pass_a_beat(process_clock)
    with Proxy.pool.lease(ttl=60) if new(Proxy) else None:  # type: ignore[union-attr]
        pass_a_beat(process_clock)
    assert reports(caplog) == []
    somewhere["deep"][0].release()  # type: ignore[union-attr]


def test_what_is_held_for_longer_than_leak_after_is_reported_once(
    proxy: Any, settings: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "LEAK_AFTER": 100}
    lease: Any = Proxy.pool.acquire(ttl=60)
    pass_a_beat(process_clock)
    assert reports(caplog) == []
    for _ in range(4):
        pass_a_beat(process_clock)
    (told,) = reports(caplog)
    assert f"fence {lease.fence} may be leaked: held for more than 100 s, acquired at " in told
    assert lease.is_held
    lease.release()


def test_only_what_nothing_else_refers_to_counts_as_forgotten() -> None:
    kept: dict[Any, None] = {Something(): None, Something(): None, Something(): None}
    mine = list(kept)[1]
    assert [one is mine for one in kept] == [False, True, False]
    found = unreferenced(list(kept))
    assert len(found) == 2
    assert mine not in found


class Something:
    pass


def test_tickets_are_nobodys_leak(caplog: pytest.LogCaptureFixture, waiting: Any) -> None:
    held: Any = Proxy.pool.acquire() if new(Proxy) else None
    waiting.start("one")
    keeper._report_leaks("default")
    assert reports(caplog) == []
    held.release()
    waiting.let_go("one")
