"""What every leased row promises, whatever else it is, on every database."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from resourcepool.dialect import DbLater
from resourcepool.leases import verbs
from resourcepool.leases.where import Where
from resourcepool.models import Ticket
from tests.app.rows import (
    Model,
    busy_for,
    change,
    claim,
    columns,
    expire,
    granted,
    leased_models,
    new,
    several,
    steal,
    wanted,
)
from tests.eventually import at_once

ROUNDS = 25

# What somebody may try on a row under a fence that is not the row's any more.
LATE: dict[str, Callable[[Any, int], object]] = {
    "renew": lambda row, fence: verbs.renew(connection, type(row), [(row.pk, fence)], 600),
    "release": lambda row, fence: verbs.release(connection, type(row), row.pk, fence, 0),
    "release with a cool-down": lambda row, fence: verbs.release(connection, type(row), row.pk, fence, 600),
    "release at exit": lambda row, fence: verbs.release_all(connection, type(row), [(row.pk, fence)], 0),
    "hand over": lambda row, fence: verbs.hand_over(
        connection, type(row), row.pk, fence, to="a friend", ttl=600
    ),
}


@pytest.fixture(params=leased_models(), ids=lambda model: model._meta.label)
def model(request: pytest.FixtureRequest) -> Model:
    return request.param


@pytest.fixture
def row(model: Model) -> Any:
    return new(model)


class TestClaim:
    def test_takes_a_fresh_row_under_its_first_fence(self, row: Any) -> None:
        grant = granted(row, "me", ttl=60)
        assert (grant.pk, grant.fence) == (row.pk, 1)
        after = columns(row)
        assert (after["fence"], after["holder"]) == (1, "me")
        assert 59 < busy_for(row) <= 60

    def test_notes_when_it_was_sent(self, row: Any) -> None:
        before = verbs.monotonic()
        assert before <= granted(row).sent_at <= verbs.monotonic()

    def test_changes_nothing_else(self, row: Any) -> None:
        before = columns(row)
        granted(row)
        leased = {"busy_before", "fence", "holder"}
        assert {n: v for n, v in columns(row).items() if n not in leased} == {
            n: v for n, v in before.items() if n not in leased
        }

    def test_leaves_other_rows_alone(self, model: Model) -> None:
        one, another = several(model, 2)
        before = columns(another)
        granted(one)
        assert columns(another) == before

    def test_is_refused_while_somebody_holds_the_row(self, row: Any) -> None:
        granted(row, "first")
        before = columns(row)
        assert claim(row, "second") is None
        assert columns(row) == before

    def test_is_refused_to_the_holder_itself(self, row: Any) -> None:
        granted(row, "me")
        assert claim(row, "me") is None

    def test_takes_an_expired_row_under_the_next_fence(self, row: Any) -> None:
        granted(row, "dead")
        expire(row)
        assert granted(row, "next").fence == 2
        assert columns(row)["holder"] == "next"

    def test_of_a_row_that_does_not_exist_is_a_loss(self, row: Any) -> None:
        gone = new(type(row))
        type(row)._base_manager.filter(pk=gone.pk)._raw_delete("default")
        assert claim(gone) is None

    def test_is_refused_when_the_row_may_not_be_handed_out(self, model: Model) -> None:
        for name, needed in model.claimable_when.items():
            row = new(model, **{name: not needed})
            before = columns(row)
            assert claim(row) is None
            assert columns(row) == before

    def test_is_refused_when_the_row_does_not_match(self, row: Any) -> None:
        assert claim(row, where=Where(" AND 1 = %s", (0,))) is None
        assert claim(row, where=Where(" AND 1 = %s", (1,))) is not None

    def test_behind_waiters_is_refused_while_anybody_alive_waits(self, model: Model) -> None:
        if model is Ticket:
            pytest.skip("nobody stands in line for tickets")
        row, label = new(model), model._meta.label_lower
        ticket = new(Ticket, pool=label, busy_before=DbLater(5), fence=1, holder="waiter")
        assert claim(row, behind_waiters=True) is None
        change(ticket, pool="another.pool")
        assert verbs.release(connection, model, row.pk, granted(row, behind_waiters=True).fence, 0)
        change(ticket, pool=label)
        expire(ticket)
        assert claim(row, behind_waiters=True) is not None


class TestRenew:
    def test_extends_the_lease_under_the_same_fence(self, row: Any) -> None:
        grant = granted(row, ttl=10)
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 60) == 1
        assert 59 < busy_for(row) <= 60
        assert (columns(row)["fence"], columns(row)["holder"]) == (grant.fence, "me")

    def test_never_shortens_a_lease(self, row: Any) -> None:
        grant = granted(row, ttl=600)
        before = columns(row)
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 1) == 1
        assert columns(row) == before

    def test_never_revives_an_expired_lease_even_if_nobody_took_it(self, row: Any) -> None:
        grant = granted(row)
        expire(row)
        before = columns(row)
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 60) == 0
        assert columns(row) == before

    def test_of_many_extends_exactly_those_still_held(self, model: Model) -> None:
        rows = several(model, 6)
        held = [(row.pk, granted(row, ttl=10).fence) for row in rows]
        stolen, expired, released, older = rows[1], rows[2], rows[3], rows[5]
        steal(stolen)
        expire(expired)
        verbs.release(connection, model, released.pk, 1, 0)
        held[5] = (older.pk, 0)
        before = {row.pk: columns(row) for row in rows}
        assert verbs.renew(connection, model, held, 60) == 2
        for number, row in enumerate(rows):
            if number in (0, 4):
                assert 59 < busy_for(row) <= 60
            else:
                assert columns(row) == before[row.pk]

    def test_of_many_does_not_mix_up_their_fences(self, model: Model) -> None:
        one, another = several(model, 2)
        granted(one)
        steal(one)
        granted(another)
        swapped = [(one.pk, 1), (another.pk, 2)]
        assert verbs.renew(connection, model, swapped, 600) == 0
        assert max(busy_for(one), busy_for(another)) <= 60


class TestRelease:
    def test_frees_the_row_at_once_and_raises_the_fence(self, row: Any) -> None:
        assert verbs.release(connection, type(row), row.pk, granted(row).fence, 0)
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")
        assert busy_for(row) <= 0
        assert granted(row, "next").fence == 3

    def test_with_a_cool_down_lets_the_row_rest(self, row: Any) -> None:
        verbs.release(connection, type(row), row.pk, granted(row).fence, 20)
        assert 19 < busy_for(row) <= 20
        assert columns(row)["holder"] == ""
        assert claim(row) is None
        expire(row)
        assert claim(row) is not None

    def test_twice_is_reported(self, row: Any) -> None:
        fence = granted(row).fence
        assert verbs.release(connection, type(row), row.pk, fence, 0)
        before = columns(row)
        assert not verbs.release(connection, type(row), row.pk, fence, 600)
        assert columns(row) == before

    def test_of_an_expired_lease_that_nobody_took_still_frees_it(self, row: Any) -> None:
        fence = granted(row).fence
        expire(row)
        assert verbs.release(connection, type(row), row.pk, fence, 0)
        assert columns(row)["fence"] == fence + 1

    def test_of_everything_frees_exactly_what_is_still_held(self, model: Model) -> None:
        kept, stolen, freed = several(model, 3)
        held = [(row.pk, granted(row).fence) for row in (stolen, freed)]
        granted(kept)
        steal(stolen)
        before = [columns(kept), columns(stolen)]
        assert verbs.release_all(connection, model, held, 0) == 1
        assert [columns(kept), columns(stolen)] == before
        assert columns(freed)["holder"] == ""


class TestHandOver:
    def test_goes_straight_to_the_successor_under_the_next_fence(self, row: Any) -> None:
        grant = granted(row, ttl=600)
        assert verbs.hand_over(connection, type(row), row.pk, grant.fence, to="heir", ttl=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (grant.fence + 1, "heir")
        assert 19 < busy_for(row) <= 20
        assert claim(row, "somebody in between") is None
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence + 1)], 60) == 1


class TestALateHolder:
    """Invariant 3: whoever comes with an old fence changes nothing at all."""

    @pytest.mark.parametrize("verb", LATE)
    def test_cannot_touch_its_successors_lease(self, row: Any, verb: str) -> None:
        late = granted(row, "late")
        steal(row, "successor")
        before = columns(row)
        assert not LATE[verb](row, late.fence)
        assert columns(row) == before

    @pytest.mark.parametrize("verb", LATE)
    def test_cannot_touch_it_even_if_both_are_busy_before_the_same_moment(self, row: Any, verb: str) -> None:
        """The document's proof of ownership is that moment, and two holders can have the same one."""
        moment = timezone.now() + datetime.timedelta(hours=1)
        late = granted(row, "same name")
        change(row, busy_before=moment)
        steal(row, "same name")
        change(row, busy_before=moment)
        before = columns(row)
        assert not LATE[verb](row, late.fence)
        assert columns(row) == before

    @pytest.mark.parametrize("verb", LATE)
    def test_cannot_touch_what_it_has_released(self, row: Any, verb: str) -> None:
        late = granted(row)
        verbs.release(connection, type(row), row.pk, late.fence, 30)
        before = columns(row)
        assert not LATE[verb](row, late.fence)
        assert columns(row) == before

    @pytest.mark.parametrize("verb", LATE)
    def test_cannot_use_a_fence_that_was_never_granted(self, row: Any, verb: str) -> None:
        grant = granted(row)
        before = columns(row)
        for fence in (grant.fence + 1, grant.fence - 1, 0, -1, 2**62):
            assert not LATE[verb](row, fence)
        assert columns(row) == before


class TestClaimAll:
    def test_takes_every_row(self, model: Model) -> None:
        rows = several(model, 3)
        grants = verbs.claim_all(connection, model, [row.pk for row in rows], wanted())
        assert grants is not None
        assert {grant.pk: grant.fence for grant in grants} == dict.fromkeys([row.pk for row in rows], 1)
        for row in rows:
            assert (columns(row)["fence"], columns(row)["holder"]) == (1, "me")
            assert 59 < busy_for(row) <= 60

    def test_takes_none_when_one_of_them_is_held(self, model: Model) -> None:
        rows = several(model, 3)
        granted(rows[1], "another")
        before = [columns(row) for row in rows]
        assert verbs.claim_all(connection, model, [row.pk for row in rows], wanted()) is None
        assert [columns(row) for row in rows] == before

    def test_takes_none_when_one_of_them_may_not_be_handed_out(self, model: Model) -> None:
        for name, needed in model.claimable_when.items():
            rows = [new(model), new(model, **{name: not needed})]
            before = [columns(row) for row in rows]
            assert verbs.claim_all(connection, model, [row.pk for row in rows], wanted()) is None
            assert [columns(row) for row in rows] == before

    def test_takes_none_when_one_of_them_is_gone(self, model: Model) -> None:
        rows = several(model, 2)
        model._base_manager.filter(pk=rows[0].pk)._raw_delete("default")
        assert verbs.claim_all(connection, model, [row.pk for row in rows], wanted()) is None
        assert columns(rows[1])["fence"] == 0

    def test_behind_waiters_takes_none_while_anybody_alive_waits(self, model: Model) -> None:
        rows = several(model, 2)
        pks = [row.pk for row in rows]
        ticket = new(Ticket, pool=model._meta.label_lower, busy_before=DbLater(5), fence=1, holder="waiter")
        assert verbs.claim_all(connection, model, pks, wanted(behind_waiters=True)) is None
        expire(ticket)
        assert verbs.claim_all(connection, model, pks, wanted(behind_waiters=True)) is not None


class TestLiveFences:
    def test_tells_which_leases_run(self, model: Model) -> None:
        free, held, expired, taken = several(model, 4)
        for row in (held, expired, taken):
            granted(row)
        expire(expired)
        steal(taken)
        pks = [row.pk for row in (free, held, expired, taken)]
        assert verbs.live_fences(connection, model, pks) == {held.pk: 1, taken.pk: 2}
        assert verbs.live_fences(connection, model, pks, holder="thief") == {taken.pk: 2}


class TestTime:
    @pytest.mark.parametrize("hours", [-1, 1])
    def test_only_the_databases_clock_decides(
        self, row: Any, hours: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong, right = datetime.timedelta(hours=hours), timezone.now
        monkeypatch.setattr(timezone, "now", lambda: right() + wrong)
        clock = time.time
        monkeypatch.setattr(time, "time", lambda: clock() + 3600 * hours)
        grant = granted(row, ttl=60)
        assert 59 < busy_for(row) <= 60
        assert claim(row) is None
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 90) == 1
        assert 89 < busy_for(row) <= 90
        expire(row)
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 90) == 0
        assert granted(row, "next").fence == 2

    def test_the_sessions_time_zone_does_not_matter(self, row: Any, other: BaseDatabaseWrapper) -> None:
        if other.vendor == "sqlite":
            pytest.skip("SQLite has no sessions")
        with other.cursor() as cursor:
            cursor.execute(
                "SET time_zone = '+05:00'" if other.vendor == "mysql" else "SET TIME ZONE 'Asia/Karachi'"
            )
        grant = verbs.claim(other, type(row), row.pk, wanted(ttl=60))
        assert grant is not None
        assert 59 < busy_for(row) <= 60
        assert verbs.renew(other, type(row), [(row.pk, grant.fence)], 90) == 1
        assert 89 < busy_for(row) <= 90
        expire(row)
        assert verbs.claim(other, type(row), row.pk, wanted()) is not None

    def test_fractions_of_a_second_count(self, row: Any) -> None:
        change(row, busy_before=DbLater(0.9))
        assert claim(row) is None
        change(row, busy_before=DbLater(-0.002))
        grant = granted(row, ttl=0.8)
        assert 0.5 < busy_for(row) <= 0.8
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 2.5) == 1
        assert 2.2 < busy_for(row) <= 2.5

    def test_a_moment_is_stored_as_finely_as_the_databases_clock_counts(self, row: Any) -> None:
        seen = set()
        for _ in range(8):
            grant = granted(row, ttl=60)
            seen.add(columns(row)["busy_before"].microsecond % 1_000)
            verbs.release(connection, type(row), row.pk, grant.fence, 0)
        assert seen == {0} if connection.vendor == "sqlite" else len(seen) > 2


class TestContention:
    def test_of_many_who_claim_at_once_exactly_one_wins(self, row: Any) -> None:
        def compete(number: int) -> list[verbs.Grant | None]:
            own = connections["default"]
            return [
                verbs.claim(own, type(row), row.pk, wanted(f"runner {number}", ttl=600)) for _ in range(ROUNDS)
            ]

        won = [grant for grants in at_once(4, compete) for grant in grants if grant is not None]
        assert len(won) == 1

    def test_every_grant_has_a_fence_of_its_own(self, row: Any) -> None:
        def compete(number: int) -> list[int]:
            own, fences = connections["default"], []
            for _ in range(ROUNDS):
                grant = verbs.claim(own, type(row), row.pk, wanted(f"runner {number}"))
                if grant is not None:
                    assert verbs.release(own, type(row), row.pk, grant.fence, 0)
                    fences.append(grant.fence)
            return fences

        fences = [fence for won in at_once(4, compete) for fence in won]
        assert len(fences) == len(set(fences))
        assert columns(row)["fence"] == 2 * len(fences)

    def test_of_two_who_want_overlapping_rows_nobody_gets_a_part(self, model: Model) -> None:
        rows = several(model, 3)
        wishes = [[rows[0].pk, rows[1].pk], [rows[2].pk, rows[1].pk]]

        def compete(number: int) -> bool:
            return (
                verbs.claim_all(connections["default"], model, wishes[number], wanted(str(number))) is not None
            )

        for _ in range(5):
            won = at_once(2, compete)
            holders = [columns(row)["holder"] for row in rows]
            assert holders in (["0", "0", ""], ["", "1", "1"], ["", "", ""])
            assert sum(won) == (1 if any(holders) else 0)
            for row in rows:
                change(row, busy_before=DbLater(-1), holder="")

    def test_a_claim_undone_by_a_rollback_was_never_made(self, row: Any) -> None:
        with pytest.raises(LookupError), transaction.atomic():
            granted(row)
            raise LookupError
        assert columns(row)["fence"] == 0
        assert granted(row).fence == 1
