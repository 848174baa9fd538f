"""Rows are given straight to those who wait: row and ticket change together, or neither does."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect import DbLater
from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.clock import monotonic
from resourcepool.leases.retry import Unsettled
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.allot import Place
from resourcepool.waiting.contention import releasing
from tests.app.models import Bare, Device, Election
from tests.app.rows import busy_for, change, columns, expire, granted, hold, new, several, steal
from tests.concurrency.tickets import in_line
from tests.concurrency.wire import Interference
from tests.resources.clients import LOST_CONNECTION
from tests.waiting.waiters import Chosen, given, ticket

US, DE = '{"country": "US"}', '{"country": "DE"}'


def release(row: Any, fence: int, trusted_until: float = 0.0) -> bool:
    return handover.release(connection, type(row), row.pk, fence, trusted_until=trusted_until)


def place_of(one: Ticket) -> Place:
    """Return how this ticket is seen now."""
    row = columns(one)
    holds = tuple((pk, fence) for pk, fence in given(one))
    about = (row["selector"], row["count"], holds, row["holder"], row["lasts"], row["address"])
    return Place(one.pk, row["fence"], *about)


@pytest.fixture(params=[True, False], ids=["somebody was in line lately", "nobody was"])
def _either_way_first(request: pytest.FixtureRequest) -> None:
    """A release tries first what was needed a moment ago; what comes of it is the same."""
    for model in (Proxy, Device, Election, Bare):
        releasing.note(model, "default", had_to_wait=request.param)


@pytest.mark.usefixtures("_either_way_first")
class TestARelease:
    @pytest.mark.parametrize("model", [Proxy, Device, Election, Bare], ids=lambda model: model.__name__)
    def test_gives_the_row_to_the_first_in_line(self, model: Any) -> None:
        row = new(model)
        first, second = ticket(model, holder="first", lasts=20_000_000), ticket(model)
        assert release(row, granted(row).fence)
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "first")
        assert 19 < busy_for(row) <= 20
        pk = row.pk if isinstance(row.pk, int) else str(row.pk)
        assert (given(first), columns(first)["is_waiting"], columns(first)["fence"]) == ([(pk, 2)], False, 2)
        assert (given(second), columns(second)["is_waiting"], columns(second)["fence"]) == ([], True, 1)

    def test_that_finds_nobody_frees_the_row(self) -> None:
        row = new(Proxy)
        for other in (
            ticket(Proxy, seconds=-1),
            ticket(Device),
            ticket(Proxy, is_waiting=False, granted="[[0, 1]]"),
            ticket(Proxy, selector=US),
        ):
            before = columns(other)
            assert release(row, granted(row).fence)
            assert columns(row)["holder"] == ""
            assert busy_for(row) <= 0
            assert columns(other) == before

    def test_of_a_row_out_of_service_gives_it_to_nobody(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        Proxy.objects.filter(pk=row.pk).take_out("broken")
        waits = ticket(Proxy)
        assert release(row, fence)
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")
        assert given(waits) == []

    def test_that_comes_too_late_changes_nothing(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        steal(row)
        waits, collects = ticket(Proxy, selector=DE), ticket(Proxy, count=2)
        plain = ticket(Proxy)
        before = [columns(one) for one in (row, waits, collects, plain)]
        assert not release(row, fence)
        assert [columns(one) for one in (row, waits, collects, plain)] == before

    @pytest.mark.parametrize(
        ("wishes", "served"),
        [
            ([US, "{}", "{}"], 1),
            ([US, DE, "{}"], 1),
            (["{}", DE], 0),
            ([US, US, US, DE], 3),
            ([US] * (handover.FEW + 2) + ["{}"], handover.FEW + 2),
        ],
        ids=str,
    )
    def test_passes_those_whom_the_row_does_not_fit(self, wishes: list[str], served: int) -> None:
        row = new(Proxy, country="DE")
        line = [ticket(Proxy, selector=selector) for selector in wishes]
        assert release(row, granted(row).fence)
        assert [bool(given(one)) for one in line] == [number == served for number in range(len(line))]

    def test_goes_by_priority_before_arrival(self) -> None:
        row = new(Proxy)
        usual, urgent = ticket(Proxy), ticket(Proxy, priority=-1)
        release(row, granted(row).fence)
        assert (given(usual), given(urgent)) == ([], [(row.pk, 2)])

    def test_to_one_who_wants_several_is_collected_until_it_has_them_all(self) -> None:
        one, another, third = several(Proxy, 3)
        collects, behind = ticket(Proxy, count=2), ticket(Proxy)
        for row in (one, another, third):
            granted(row)
        release(one, 1)
        assert (given(collects), columns(collects)["is_waiting"]) == ([(one.pk, 2)], True)
        release(another, 1)
        assert (given(collects), columns(collects)["is_waiting"]) == ([(one.pk, 2), (another.pk, 2)], False)
        assert columns(collects)["fence"] == 3
        release(third, 1)
        assert given(behind) == [(third.pk, 2)]

    def test_through_a_proxy_model_finds_the_same_line(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        fence = granted(row).fence
        assert handover.release(connection, Chosen, row.pk, fence, trusted_until=0.0)
        assert given(waits) == [(row.pk, 2)]

    def test_of_an_expired_lease_that_nobody_took_still_gives_it_on(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        fence = granted(row).fence
        expire(row)
        assert release(row, fence)
        assert given(waits) == [(row.pk, 2)]

    def test_to_one_that_changes_meanwhile_goes_to_the_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = new(Proxy, country="DE")
        first, second = ticket(Proxy, selector=DE), ticket(Proxy, selector=DE)
        give = handover.give

        def left_meanwhile(*args: Any, **options: Any) -> bool:
            Ticket.objects.filter(pk=first.pk).delete()
            return give(*args, **options)

        monkeypatch.setattr(handover, "give", left_meanwhile)
        assert release(row, granted(row).fence)
        assert given(second) == [(row.pk, 2)]


class TestInATransactionOfTheCaller:
    def test_a_release_frees_the_row_at_its_end_and_gives_it_out_then(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        lease = hold(row)
        with transaction.atomic():
            lease.release()
            assert given(waits) == [], "a locked ticket would hold up its whole process"
        assert given(waits) == [(row.pk, 3)]

    def test_a_rollback_leaves_everything_as_it_was(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        fence = granted(row).fence
        before = [columns(row), columns(waits)]
        with pytest.raises(LookupError), transaction.atomic():
            assert release(row, fence)
            raise LookupError
        assert [columns(row), columns(waits)] == before


class TestACoolDown:
    def test_comes_before_the_next_in_line(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        hold(row, cooldown=60).release()
        assert given(waits) == []
        assert busy_for(row) > 59
        expire(row)
        handover.give_out(connection, Proxy)
        assert given(waits) == [(row.pk, 3)]


CHANGES: dict[str, Callable[[Any, Ticket], object]] = {
    "the row is under another fence": lambda row, waits: steal(row),
    "the row is gone": lambda row, waits: Proxy.objects.filter(pk=row.pk)._raw_delete("default"),
    "the row is out of service": lambda row, waits: Proxy.objects.filter(pk=row.pk).take_out("broken"),
    "the ticket has been given something": lambda row, waits: change(waits, fence=2, granted="[[0, 1]]"),
    "the ticket has run out": lambda row, waits: expire(waits),
    "the ticket is gone": lambda row, waits: Ticket.objects.filter(pk=waits.pk)._raw_delete("default"),
}


class TestGiving:
    def test_changes_row_and_ticket(self) -> None:
        row, waits = new(Proxy), ticket(Proxy, holder="me")
        granted(row)
        assert handover.give(connection, Proxy, row.pk, 1, place_of(waits))
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "me")
        assert given(waits) == [(row.pk, 2)]
        assert not columns(waits)["is_waiting"]

    @pytest.mark.parametrize("meanwhile", CHANGES)
    @pytest.mark.parametrize("if_free", [True, False])
    def test_changes_neither_if_one_of_them_is_not_as_it_was_seen(self, meanwhile: str, if_free: bool) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        place = place_of(waits)
        if not if_free:
            granted(row)
        fence = columns(row)["fence"]
        CHANGES[meanwhile](row, waits)
        before = everything()
        assert not handover.give(connection, Proxy, row.pk, fence, place, if_free=if_free)
        assert everything() == before

    def test_of_what_should_be_free_fails_if_it_is_held(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        granted(row)
        before = everything()
        assert not handover.give(connection, Proxy, row.pk, 1, place_of(waits), if_free=True)
        assert everything() == before

    def test_adds_to_what_the_ticket_has(self) -> None:
        one, another = several(Proxy, 2)
        collects = ticket(Proxy, count=3)
        for row in (one, another):
            assert handover.give(connection, Proxy, row.pk, 0, place_of(collects), if_free=True)
        assert given(collects) == [(one.pk, 1), (another.pk, 1)]
        assert columns(collects)["is_waiting"]


def everything() -> list[Any]:
    return [list(model._base_manager.order_by("pk").values()) for model in (Proxy, Ticket)]


class TestGivingOut:
    def test_serves_in_the_order_of_the_line_longest_idle_row_first(self) -> None:
        rows = several(Proxy, 3)
        for age, row in zip((1, 3, 2), rows, strict=True):
            change(row, busy_before=DbLater(-age))
        usual, late, urgent = ticket(Proxy), ticket(Proxy, priority=5), ticket(Proxy, priority=-5)
        _, done = handover.give_out(connection, Proxy)
        assert done == {
            urgent.pk: ((rows[1].pk, 1),),
            usual.pk: ((rows[2].pk, 1),),
            late.pk: ((rows[0].pk, 1),),
        }
        assert given(urgent) == [(rows[1].pk, 1)]

    def test_gives_everybody_what_fits(self) -> None:
        us, de = new(Proxy, country="US"), new(Proxy, country="DE")
        french, german, any_one = (ticket(Proxy, selector=s) for s in ('{"country": "FR"}', DE, "{}"))
        handover.give_out(connection, Proxy)
        assert (given(french), given(german), given(any_one)) == ([], [(de.pk, 1)], [(us.pk, 1)])

    def test_gives_nothing_that_is_held_rests_or_is_out_of_service(self) -> None:
        held, rests, out = several(Proxy, 3)
        hold(held)
        hold(rests, cooldown=60).release()
        Proxy.objects.filter(pk=out.pk).take_out("broken")
        waits = ticket(Proxy)
        seen, done = handover.give_out(connection, Proxy)
        assert (seen.free, done, given(waits)) == ({}, {}, [])
        assert 50 < (seen.next_in or 0) <= 60

    def test_tells_what_is_free_if_nobody_waits(self) -> None:
        row = new(Proxy)
        seen, done = handover.give_out(connection, Proxy)
        assert (seen.free, seen.next_in, done) == ({row.pk: 0}, None, {})
        assert columns(row)["fence"] == 0

    def test_leaves_alone_what_somebody_was_faster_to_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, another = several(Proxy, 2)
        first, second = ticket(Proxy), ticket(Proxy)
        allot = handover.allot

        def too_slow(*args: Any) -> Any:
            granted(one, "faster")
            return allot(*args)

        monkeypatch.setattr(handover, "allot", too_slow)
        handover.give_out(connection, Proxy)
        assert columns(one)["holder"] == "faster"
        assert (given(first), given(second)) == ([(another.pk, 1)], [])

    def test_passes_nobody_over_when_others_give_out_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of two who look at once, one saw the rows before, and the line after the other had served the first."""
        one, another = several(Proxy, 2)
        served, first, second = ticket(Proxy), ticket(Proxy), ticket(Proxy)
        in_line = tickets.in_line

        def too_late(*args: Any) -> Any:
            assert handover.give(connection, Proxy, one.pk, 0, place_of(served))
            return in_line(*args)

        monkeypatch.setattr(tickets, "in_line", too_late)
        handover.give_out(connection, Proxy)
        assert (given(served), given(first), given(second)) == ([(one.pk, 1)], [(another.pk, 1)], [])

    def test_gives_the_next_what_somebody_has_no_use_for_any_more(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, another = several(Proxy, 2)
        served, first, second = ticket(Proxy), ticket(Proxy), ticket(Proxy)
        allot = handover.allot

        def too_slow(*args: Any) -> Any:
            assert handover.give(connection, Proxy, one.pk, 0, place_of(served))
            return allot(*args)

        monkeypatch.setattr(handover, "allot", too_slow)
        handover.give_out(connection, Proxy)
        assert (given(served), given(first), given(second)) == ([(one.pk, 1)], [(another.pk, 1)], [])

    def test_to_one_who_wants_several_gives_what_there_is(self) -> None:
        rows = several(Proxy, 2)
        collects, behind = ticket(Proxy, count=3), ticket(Proxy)
        handover.give_out(connection, Proxy)
        assert {pk for pk, _ in given(collects)} == {row.pk for row in rows}
        assert columns(collects)["is_waiting"]
        assert given(behind) == []

    def test_to_everybody_looks_at_every_wish(self) -> None:
        us = new(Proxy, country="US")
        several(Proxy, handover.FEW + 1, country="DE")
        waits = ticket(Proxy, selector=US)
        handover.give_everybody(connection, Proxy)
        assert given(waits) == [(us.pk, 1)]


class TestTakingBack:
    def collecting(self, row: Any, **fields: Any) -> Ticket:
        """Return a ticket for two that has been given this row."""
        one = ticket(Proxy, count=2, **fields)
        assert handover.give(connection, Proxy, row.pk, columns(row)["fence"], place_of(one))
        return one

    def test_frees_what_one_that_came_later_with_a_better_priority_lacks(self) -> None:
        one, another = several(Proxy, 2)
        usual = self.collecting(one)
        urgent = self.collecting(another, priority=-1)
        handover.take_back(connection, Proxy)
        assert (given(usual), columns(usual)["is_waiting"], columns(usual)["fence"]) == ([], True, 3)
        assert (columns(one)["fence"], columns(one)["holder"]) == (2, "")
        assert busy_for(one) <= 0
        assert given(urgent) == [(another.pk, 1)]
        handover.give_out(connection, Proxy)
        assert sorted(given(urgent)) == sorted([(another.pk, 1), (one.pk, 3)])
        assert in_line() == ["stranger"]

    def test_leaves_alone_what_nobody_before_it_wants(self) -> None:
        row = new(Proxy, country="US")
        self.collecting(row)
        ticket(Proxy, priority=-1, selector=DE)
        before = everything()
        handover.take_back(connection, Proxy)
        assert everything() == before

    def test_leaves_alone_what_the_first_in_line_has(self) -> None:
        row = new(Proxy)
        self.collecting(row)
        ticket(Proxy, count=2)
        before = everything()
        handover.take_back(connection, Proxy)
        assert everything() == before

    def test_leaves_alone_a_ticket_that_was_completed_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, another = several(Proxy, 2)
        usual = self.collecting(one)
        ticket(Proxy, priority=-1)
        in_line = tickets.in_line

        def served_meanwhile(*args: Any) -> Any:
            line = in_line(*args)
            assert handover.give(connection, Proxy, another.pk, 0, place_of(usual))
            return line

        monkeypatch.setattr(tickets, "in_line", served_meanwhile)
        handover.take_back(connection, Proxy)
        assert given(usual) == [(one.pk, 1), (another.pk, 1)]
        assert columns(one)["holder"] == "stranger"


class TestAReleaseWhoseReplyWasLost:
    """Row and ticket tell what became of it."""

    def settled(self, row: Any, fence: int, trusted_until: float = 0.0) -> bool:
        return handover._was_given_back(connection, Proxy, row.pk, fence, trusted_until)

    def test_did_not_take_effect_while_the_lease_stands(self) -> None:
        row = new(Proxy)
        with pytest.raises(Unsettled):
            self.settled(row, granted(row).fence)

    def test_took_effect_if_the_row_is_free(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        release(row, fence)
        assert self.settled(row, fence)

    @pytest.mark.parametrize("count", [1, 3])
    def test_took_effect_if_a_ticket_has_the_row(self, count: int) -> None:
        one, row = several(Proxy, 2)
        ticket(Proxy, count=count)
        if count > 1:
            release(one, granted(one).fence)
        fence = granted(row).fence
        release(row, fence)
        assert self.settled(row, fence)

    def test_is_not_taken_for_good_if_somebody_has_had_the_row_since(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        steal(row)
        assert not self.settled(row, fence)
        verbs.release(connection, Proxy, row.pk, fence + 1, 0)
        assert not self.settled(row, fence), "the thief has released it, not we"

    def test_took_effect_whatever_the_row_says_while_nobody_else_can_have_claimed_it(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        release(row, fence)
        granted(row, "next")
        assert self.settled(row, fence, trusted_until=monotonic() + 5)
        assert not self.settled(row, fence, trusted_until=monotonic() - 5)

    def test_was_of_no_use_if_the_row_is_gone(self) -> None:
        row = new(Proxy)
        Proxy.objects.filter(pk=row.pk)._raw_delete("default")
        assert not self.settled(row, 1)


@pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could go away
class TestALostConnection:
    @pytest.fixture
    def interference(self) -> Iterator[Interference]:
        interference = Interference()
        with connection.execute_wrapper(interference):
            yield interference

    @pytest.mark.parametrize("after", [True, False])
    @pytest.mark.parametrize("waits", [True, False])
    def test_in_the_middle_of_a_release_is_settled_by_row_and_ticket(
        self, interference: Interference, waits: bool, after: bool
    ) -> None:
        row = new(Proxy)
        lease, line = hold(row), [ticket(Proxy)] * waits
        interference.expect("UPDATE", LOST_CONNECTION[connection.vendor], after=after)
        lease.release()
        assert columns(row)["fence"] == 2
        assert [given(one) for one in line] == [[(row.pk, 2)]] * waits

    def test_does_not_hide_that_the_lease_was_lost(self, interference: Interference) -> None:
        row = new(Proxy)
        lease = hold(row)
        lease.trust.until -= 100
        verbs.release(connection, Proxy, row.pk, steal(row).fence, 0)
        interference.expect("UPDATE", LOST_CONNECTION[connection.vendor])
        with pytest.raises(LeaseLost):
            lease.release()


@contextlib.contextmanager
def locked_by(other: BaseDatabaseWrapper, one: Ticket) -> Iterator[None]:
    """Keep this ticket locked by a transaction of another connection."""
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM resourcepool_ticket WHERE id = %s FOR UPDATE", [one.pk])
    yield
    other.rollback()
    other.set_autocommit(True)


@pytest.mark.only("mysql", "postgresql")  # SQLite locks no rows
class TestALockedTicket:
    @pytest.mark.parametrize("likely", [True, False])
    def test_is_passed_for_the_next_without_waiting_for_it(
        self, other: BaseDatabaseWrapper, likely: bool
    ) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        locked, free = ticket(Proxy), ticket(Proxy)
        releasing.note(Proxy, "default", had_to_wait=likely)
        with locked_by(other, locked):
            assert release(row, fence)
        assert (given(locked), given(free)) == ([], [(row.pk, 2)])

    def test_does_not_keep_a_release_that_it_does_not_fit(self, other: BaseDatabaseWrapper) -> None:
        row = new(Proxy, country="DE")
        fence = granted(row).fence
        locked = ticket(Proxy, selector=US)
        with locked_by(other, locked):
            assert release(row, fence)
        assert columns(row)["holder"] == ""


@pytest.mark.only("mysql")
def test_a_hand_over_makes_no_file_on_mariadb() -> None:
    """As an UPDATE of two tables does that writes a text of any length: the file systems of busy servers notice."""
    held = hold(new(Proxy))
    waits = ticket(Proxy)
    before = _files_made()
    held.release()
    assert given(waits)
    assert _files_made() == before


def _files_made() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Created_tmp_disk_tables'")
        return int(cursor.fetchone()[1])


def test_a_release_looks_behind_the_first_few_when_those_have_just_been_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = new(Proxy)
    held, line = hold(row), [ticket(Proxy) for _ in range(handover.FEW + 2)]
    give, served = handover.give, {one.pk for one in line[: handover.FEW]}

    def too_late(*where: Any, **options: Any) -> bool:
        if where[-1].ticket in served:
            Ticket.objects.filter(pk__in=served).update(is_waiting=False, fence=2)
            return False
        return give(*where, **options)

    monkeypatch.setattr(handover, "give", too_late)
    assert handover._to_fitting(connection, Proxy, row.pk, held.fence)
    assert given(line[handover.FEW]) == [(row.pk, held.fence + 1)]


@pytest.mark.only("mysql", "postgresql")
def test_what_looks_free_and_is_locked_by_somebodys_transaction_holds_nobody_up(
    other: BaseDatabaseWrapper,
) -> None:
    """It would until that one ends."""
    row, waits = new(Proxy), ticket(Proxy)
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM resourcepool_proxy WHERE id = %s FOR UPDATE", [row.pk])
        handover.give_out(connection, Proxy)
    assert not given(waits)
    other.rollback()
    handover.give_out(connection, Proxy)
    assert given(waits)
