"""Releases hand rows over to waiters: row and ticket change together, or neither does."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.clock import monotonic
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import assignment, handover, source
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import pacing_of
from resourcepool.waiting.release import give_to_first_match
from tests.app.models import Bare, Device, Poll
from tests.app.rows import audited, busy_for, change, columns, expire, granted, hold, lasts, new, several, steal
from tests.waiting.handover_helpers import DE, US, everything, release, waiting_ticket
from tests.waiting.threads import Chosen, given, ticket

pytestmark = pytest.mark.usefixtures("by_name")  # elsewhere texts are sent


@pytest.fixture(params=[True, False], ids=["recent waiters", "no recent waiters"])
def _either_way_first(request: pytest.FixtureRequest) -> None:
    """A release first tries what succeeded recently; the result must be the same."""
    for model in (Proxy, Device, Poll, Bare):
        pacing_of(pool_name(model), "default").awaited_until = monotonic() + 60 * request.param


@pytest.mark.usefixtures("_either_way_first")
class TestARelease:
    @pytest.mark.parametrize("model", [Proxy, Device, Poll, Bare], ids=lambda model: model.__name__)
    def test_gives_the_row_to_the_first_in_line(self, model: Any) -> None:
        row = new(model)
        first, second = ticket(model, holder="first", grant_us=20_000_000), ticket(model)
        assert release(row, granted(row).fence)
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "first")
        assert lasts(row, 20)
        pk = row.pk if isinstance(row.pk, int) else str(row.pk)
        assert (given(first), columns(first)["is_waiting"], columns(first)["fence"]) == ([(pk, 2)], False, 2)
        assert (given(second), columns(second)["is_waiting"], columns(second)["fence"]) == ([], True, 1)

    @pytest.mark.only("mysql")  # these do not send the last insert id then
    def test_is_noted_if_the_table_has_a_trigger(self, monkeypatch: pytest.MonkeyPatch) -> None:
        noted = list[int]()
        monkeypatch.setattr(handover, "note_given", lambda using, line, pk, address: noted.append(pk))
        row, waits = new(Proxy), ticket(Proxy)
        with audited(Proxy):
            assert release(row, granted(row).fence)
        assert (given(waits), noted) == ([(row.pk, 2)], [waits.pk])

    def test_without_a_matching_waiter_frees_the_row(self) -> None:
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

    def test_of_a_row_out_of_service_does_not_hand_it_over(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        Proxy.objects.filter(pk=row.pk).drain("broken")
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
            ([US] * (handover.FIRST_TICKETS + 2) + ["{}"], handover.FIRST_TICKETS + 2),
        ],
        ids=str,
    )
    def test_skips_tickets_that_do_not_match(self, wishes: list[str], served: int) -> None:
        row = new(Proxy, country="DE")
        line = [ticket(Proxy, selector=selector) for selector in wishes]
        assert release(row, granted(row).fence)
        assert [bool(given(one)) for one in line] == [number == served for number in range(len(line))]

    def test_goes_by_priority_before_arrival(self) -> None:
        row = new(Proxy)
        usual, urgent = ticket(Proxy), ticket(Proxy, priority=-1)
        release(row, granted(row).fence)
        assert (given(usual), given(urgent)) == ([], [(row.pk, 2)])

    def test_to_a_ticket_for_several_is_collected_until_complete(self) -> None:
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
        assert source.release(connection, Chosen, row.pk, fence, trusted_until=0.0)
        assert given(waits) == [(row.pk, 2)]

    def test_of_an_expired_unclaimed_lease_still_hands_it_over(self) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        fence = granted(row).fence
        expire(row)
        assert release(row, fence)
        assert given(waits) == [(row.pk, 2)]

    def test_to_a_ticket_that_changes_meanwhile_goes_to_the_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = new(Proxy, country="DE")
        first, second = ticket(Proxy, selector=DE), ticket(Proxy, selector=DE)
        give = handover.give

        def left_meanwhile(*args: Any, **options: Any) -> bool:
            Ticket.objects.filter(pk=first.pk).delete()
            return give(*args, **options)

        monkeypatch.setattr(handover, "give", left_meanwhile)
        assert release(row, granted(row).fence)
        assert given(second) == [(row.pk, 2)]

    def test_to_a_ticket_for_several_that_just_got_another_row_still_succeeds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row, other = several(Proxy, 2)
        collects, behind = ticket(Proxy, count=3), ticket(Proxy)
        in_line = handover.tickets.in_line

        def meanwhile(*args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            line = in_line(*args, **options)
            assert handover.give(connection, Proxy, other.pk, 0, waiting_ticket(collects))
            return line

        fence = granted(row).fence
        monkeypatch.setattr(handover.tickets, "in_line", meanwhile)
        assert release(row, fence)
        assert {pk for pk, _ in given(collects)} == {row.pk, other.pk}
        assert given(behind) == []


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
        assert lasts(row, 60)
        expire(row)
        assignment.assign_free_rows(connection, Proxy)
        assert given(waits) == [(row.pk, 3)]


CHANGES: dict[str, Callable[[Any, Ticket], object]] = {
    "the row is under another fence": lambda row, waits: steal(row),
    "the row is gone": lambda row, waits: Proxy.objects.filter(pk=row.pk)._raw_delete("default"),
    "the row is out of service": lambda row, waits: Proxy.objects.filter(pk=row.pk).drain("broken"),
    "the ticket has been given something": lambda row, waits: change(waits, fence=2, granted="[[0, 1]]"),
    "the ticket has run out": lambda row, waits: expire(waits),
    "the ticket is gone": lambda row, waits: Ticket.objects.filter(pk=waits.pk)._raw_delete("default"),
}


class TestGiving:
    def test_changes_row_and_ticket(self) -> None:
        row, waits = new(Proxy), ticket(Proxy, holder="me")
        granted(row)
        assert handover.give(connection, Proxy, row.pk, 1, waiting_ticket(waits))
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "me")
        assert given(waits) == [(row.pk, 2)]
        assert not columns(waits)["is_waiting"]

    @pytest.mark.parametrize("meanwhile", CHANGES)
    @pytest.mark.parametrize("if_free", [True, False])
    def test_changes_neither_if_one_of_them_is_not_as_it_was_seen(self, meanwhile: str, if_free: bool) -> None:
        row, waits = new(Proxy), ticket(Proxy)
        place = waiting_ticket(waits)
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
        assert not handover.give(connection, Proxy, row.pk, 1, waiting_ticket(waits), if_free=True)
        assert everything() == before

    def test_adds_to_what_the_ticket_has(self) -> None:
        one, another = several(Proxy, 2)
        collects = ticket(Proxy, count=3)
        for row in (one, another):
            assert handover.give(connection, Proxy, row.pk, 0, waiting_ticket(collects), if_free=True)
        assert given(collects) == [(one.pk, 1), (another.pk, 1)]
        assert columns(collects)["is_waiting"]


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
    held, line = hold(row), [ticket(Proxy) for _ in range(handover.FIRST_TICKETS + 2)]
    give, served = handover.give, {one.pk for one in line[: handover.FIRST_TICKETS]}

    def too_late(*where: Any, **options: Any) -> bool:
        if where[-1].pk in served:
            Ticket.objects.filter(pk__in=served).update(is_waiting=False, fence=2)
            return False
        return give(*where, **options)

    monkeypatch.setattr(handover, "give", too_late)
    assert give_to_first_match(connection, Proxy, row.pk, held.fence)
    assert given(line[handover.FIRST_TICKETS]) == [(row.pk, held.fence + 1)]
