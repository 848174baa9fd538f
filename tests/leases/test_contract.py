"""The promises of every kind of leased row, on every database."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.db.dialect.statement import Where
from resourcepool.db.retry import Unsettled
from resourcepool.leases import verbs
from tests.app.rows import (
    Model,
    audited,
    busy_for,
    claim,
    columns,
    expire,
    granted,
    lasts,
    new,
    several,
    steal,
    wanted,
)

pytestmark = pytest.mark.usefixtures("by_name")  # elsewhere texts are sent


class TestClaim:
    def test_takes_a_fresh_row_under_its_first_fence(self, row: Any) -> None:
        grant = granted(row, "me", ttl=60)
        assert (grant.pk, grant.fence) == (row.pk, 1)
        after = columns(row)
        assert (after["fence"], after["holder"]) == (1, "me")
        assert lasts(row, 60)

    @pytest.mark.only("mysql")  # these do not send the last insert id then
    def test_knows_its_fence_if_the_table_has_a_trigger(self, row: Any) -> None:
        with audited(row._meta.model):
            assert granted(row).fence == 1

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


class TestRenew:
    def test_extends_the_lease_under_the_same_fence(self, row: Any) -> None:
        grant = granted(row, ttl=10)
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 60) == 1
        assert lasts(row, 60)
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
                assert lasts(row, 60)
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

    def test_of_many_extends_each_for_its_own_ttl(self, model: Model) -> None:
        ttls = [20, 0, 3_000, 40.5, 10, 60]
        rows = several(model, len(ttls))
        held = [(row.pk, granted(row, ttl=10).fence) for row in rows]
        steal(rows[2])
        assert verbs.renew_unless_locked(connection, model, held, ttls) == 5
        for row, ttl in zip(rows, [20, 10, 60, 40.5, 10, 60], strict=True):
            assert lasts(row, ttl)


class TestRelease:
    def test_frees_the_row_at_once_and_raises_the_fence(self, row: Any) -> None:
        assert verbs.release(connection, type(row), row.pk, granted(row).fence, 0)
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")
        assert busy_for(row) <= 0
        assert granted(row, "next").fence == 3

    def test_with_a_cool_down_lets_the_row_rest(self, row: Any) -> None:
        verbs.release(connection, type(row), row.pk, granted(row).fence, 20)
        assert lasts(row, 20)
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

    def test_of_everything_lets_each_rest_for_its_own_cool_down(self, model: Model) -> None:
        rows = several(model, 3)
        held = [(row.pk, granted(row).fence) for row in rows]
        assert verbs.release_all(connection, model, held, [0, 20, 600]) == 3
        for row, rests in zip(rows, [0, 20, 600], strict=True):
            assert lasts(row, rests)


class TestSettlingARelease:
    """Its reply was lost: the row tells what became of it, and what it cannot tell is no release."""

    def settled(self, row: Any, trusted_until: float = 0.0) -> int:
        return verbs.settle_release(connection, type(row), row.pk, 1, trusted_until)

    def test_it_is_sent_again_while_the_lease_stands(self, row: Any) -> None:
        granted(row)
        with pytest.raises(Unsettled):
            self.settled(row)

    def test_it_took_effect_if_the_row_is_nobodys_under_the_next_fence(self, row: Any) -> None:
        verbs.release(connection, type(row), row.pk, granted(row).fence, 0)
        assert self.settled(row) == 1

    def test_it_is_a_loss_if_somebody_else_has_had_the_row_since(self, row: Any) -> None:
        granted(row)
        thief = steal(row)
        assert self.settled(row) == 0
        verbs.release(connection, type(row), row.pk, thief.fence, 0)
        assert self.settled(row) == 0, "the thief has released it"

    def test_it_took_effect_while_nobody_else_can_have_claimed_the_row(self, row: Any) -> None:
        verbs.release(connection, type(row), row.pk, granted(row).fence, 0)
        granted(row, "next")
        assert self.settled(row, trusted_until=monotonic() + 5) == 1
        assert self.settled(row, trusted_until=monotonic() - 5) == 0

    def test_it_is_a_loss_if_the_row_is_gone(self, row: Any) -> None:
        type(row)._base_manager.filter(pk=row.pk)._raw_delete("default")
        assert self.settled(row) == 0


class TestHandOver:
    def test_goes_straight_to_the_successor_under_the_next_fence(self, row: Any) -> None:
        grant = granted(row, ttl=600)
        assert verbs.hand_over(connection, type(row), row.pk, grant.fence, to="heir", ttl=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (grant.fence + 1, "heir")
        assert lasts(row, 20)
        assert claim(row, "somebody in between") is None
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence + 1)], 60) == 1


class TestAdopt:
    def test_is_a_grant_of_its_own(self, row: Any) -> None:
        grant = granted(row, ttl=600)
        adopted = verbs.adopt(connection, type(row), row.pk, grant.fence, wanted("heir", 20))
        assert adopted is not None
        assert (adopted.pk, adopted.fence, adopted.holder) == (row.pk, grant.fence + 1, "heir")
        assert (columns(row)["fence"], columns(row)["holder"]) == (grant.fence + 1, "heir")
        assert lasts(row, 20)

    def test_happens_once(self, row: Any) -> None:
        grant = granted(row)
        assert verbs.adopt(connection, type(row), row.pk, grant.fence, wanted("heir")) is not None
        before = columns(row)
        assert verbs.adopt(connection, type(row), row.pk, grant.fence, wanted("another")) is None
        assert columns(row) == before

    def test_never_revives_what_ran_out(self, row: Any) -> None:
        grant = granted(row)
        expire(row)
        before = columns(row)
        assert verbs.adopt(connection, type(row), row.pk, grant.fence, wanted("heir")) is None
        assert columns(row) == before


class TestClaimAll:
    def test_takes_every_row(self, model: Model) -> None:
        rows = several(model, 3)
        grants = verbs.claim_all(connection, model, [row.pk for row in rows], wanted())
        assert grants is not None
        assert {grant.pk: grant.fence for grant in grants} == dict.fromkeys([row.pk for row in rows], 1)
        for row in rows:
            assert (columns(row)["fence"], columns(row)["holder"]) == (1, "me")
            assert lasts(row, 60)

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
