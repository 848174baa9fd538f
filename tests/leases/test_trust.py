"""The time window in which a handle trusts its grant."""

import pytest

from resourcepool.leases.terms import Terms, Trust

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
