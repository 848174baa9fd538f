"""Several rows of one name: claimed all or none, given up together."""

import math
from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater
from resourcepool.db.dialect.statement import Where
from resourcepool.leases import verbs
from resourcepool.leases.terms import Request, Terms
from resourcepool.locks import Semaphore
from resourcepool.models import SemaphorePermit, Ticket
from resourcepool.waiting import handover, release as releases, tickets
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import pacing_of
from resourcepool.waiting.release import give_several, release_many
from tests.app.rows import change, columns, steal
from tests.committed import Statement
from tests.waiting.threads import given, ticket

LINE = line_name(SemaphorePermit, "seats")


def permits(count: int, name: str = "seats") -> list[Any]:
    made = [SemaphorePermit(key=f"{name}#{number}", name=name) for number in range(count)]
    SemaphorePermit.objects.bulk_create(made)
    return list(SemaphorePermit.objects.filter(name=name).order_by("pk"))


def request(count: int = 1, holder: str = "me") -> Request:
    return Request(Terms(60, holder), count=count, selector="seats")


def held(count: int, holder: str = "me") -> list[tuple[Any, int]]:
    grants = Semaphore("seats").claim_free(connection, request(count, holder))
    assert grants is not None
    return [(grant.pk, grant.fence) for grant in grants]


def waits(count: int = 1, **fields: Any) -> Ticket:
    made = ticket(SemaphorePermit, count=count, selector="seats", **fields)
    change(made, pool=LINE)
    return made


def free() -> int:
    return int(SemaphorePermit.objects.available().count())


def release(rows: Any) -> list[Any]:
    return release_many(connection, SemaphorePermit, rows, trusted_until=0.0)


class TestClaiming:
    def test_all_or_none(self) -> None:
        permits(5)
        assert len(held(3)) == 3
        assert Semaphore("seats").claim_free(connection, request(3)) is None
        assert free() == 2
        assert len(held(2)) == 2

    def test_only_of_this_name_and_in_service(self) -> None:
        first, *_ = permits(2)
        permits(2, "chairs")
        change(first, in_service=False)
        assert [pk for pk, _ in held(1)] == ["seats#1"]
        assert Semaphore("seats").claim_free(connection, request()) is None


@pytest.fixture(params=[True, False], ids=["somebody was in line lately", "nobody was"])
def _either_way_first(request: pytest.FixtureRequest) -> None:
    pacing_of(LINE, "default").awaited_until = math.inf if request.param else -math.inf


@pytest.mark.usefixtures("_either_way_first")
class TestGivingUpTogether:
    def test_nobody_waits(self) -> None:
        rows = permits(3)
        mine = held(3)
        assert release(mine) == []
        assert free() == 3
        assert {columns(row)["holder"] for row in rows} == {""}
        assert sorted(columns(row)["fence"] for row in rows) == sorted(fence + 1 for _, fence in mine)

    def test_to_one_who_wants_all_of_them(self) -> None:
        permits(3)
        mine, other = held(3), waits(3, holder="writer", grant_us=20_000_000)
        assert release(mine) == []
        assert given(other) == [(pk, fence + 1) for pk, fence in mine]
        assert not columns(other)["is_waiting"]
        assert set(SemaphorePermit.objects.values_list("holder", flat=True)) == {"writer"}
        assert free() == 0

    def test_to_each_in_line_in_its_order_and_the_rest_is_free(self) -> None:
        permits(5)
        mine = held(5)
        one, several_, behind = waits(), waits(2), waits(priority=-1)
        assert release(mine) == []
        assert [len(given(each)) for each in (one, several_, behind)] == [1, 2, 1]
        assert given(behind)[0][0] == mine[0][0]
        assert free() == 1

    def test_to_one_who_needs_more(self) -> None:
        permits(4)
        mine, collects, behind = held(2), waits(4), waits()
        assert release(mine) == []
        assert (len(given(collects)), columns(collects)["is_waiting"]) == (2, True)
        assert given(behind) == []
        assert free() == 2  # as before

    def test_one_who_needs_more_and_has_just_got_another_is_not_passed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        permits(3)
        mine, collects, behind = held(2), waits(3), waits()
        other = SemaphorePermit.objects.available().get()
        give = releases.give_several

        def meanwhile(*args: Any) -> bool:
            monkeypatch.undo()
            assert handover.give(connection, SemaphorePermit, other.pk, other.fence, args[-1])
            return give(*args)

        monkeypatch.setattr(releases, "give_several", meanwhile)
        assert release(mine) == []
        assert (len(given(collects)), columns(collects)["is_waiting"]) == (3, False)
        assert given(behind) == []

    def test_a_dead_ticket_gets_none(self) -> None:
        permits(2)
        mine, dead = held(2), waits(2, seconds=-1)
        assert release(mine) == []
        assert given(dead) == []
        assert free() == 2

    def test_what_is_out_of_service_is_given_to_nobody(self) -> None:
        first, *_ = permits(3)
        mine = held(3)
        change(first, in_service=False)
        one, two = waits(), waits()
        assert release(mine) == []
        assert (len(given(one)), len(given(two))) == (1, 1)
        assert columns(first)["holder"] == ""

    @pytest.mark.parametrize("somebody_waits", [True, False])
    def test_what_was_lost_is_told_and_not_changed(self, somebody_waits: bool) -> None:
        first, *_ = permits(3)
        mine = held(3)
        steal(first)
        before = columns(first)
        other = waits() if somebody_waits else None
        assert release(mine) == [first.pk]
        assert columns(first) == before
        if other:
            assert len(given(other)) == 1


class TestGivingSeveralToOne:
    """All of them, or nothing is changed."""

    @pytest.mark.parametrize(
        "trouble", ["a row is lost", "a row is out of service", "the ticket has changed", "it is dead"]
    )
    def test_or_nothing(self, trouble: str) -> None:
        rows = permits(3)
        mine, other = held(3), waits(3)
        (seen,) = tickets.in_line(connection, SemaphorePermit, selector="seats")
        if trouble == "a row is lost":
            steal(rows[0])
        elif trouble == "a row is out of service":
            change(rows[0], in_service=False)
        elif trouble == "the ticket has changed":
            change(other, fence=5)
        else:
            change(other, busy_before=DbLater(-1))
        before = [columns(one) for one in (*rows, other)]
        assert not give_several(connection, SemaphorePermit, mine, seen)
        assert [columns(one) for one in (*rows, other)] == before


class TestStatements:
    def test_one_for_all_rows_when_nobody_waits(self, statements: list[Statement]) -> None:
        permits(10)
        mine = held(10)
        statements.clear()
        release(mine)
        assert [one.sql.split()[0] for one in statements] == ["UPDATE"]

    def test_a_ticket_for_all_rows_is_given_them_at_once(self, statements: list[Statement]) -> None:
        permits(10)
        mine, _other = held(10), waits(10)
        pacing_of(LINE, "default").found_waiters(monotonic())
        statements.clear()
        release(mine)
        # Besides these, a transaction, with its limits.
        sent = [one.sql.split()[0] for one in statements if "SET_CONFIG" not in one.sql]
        assert [word for word in sent if word in ("SELECT", "UPDATE")] == ["SELECT", "UPDATE", "UPDATE"]


def test_a_condition_belongs_to_the_release() -> None:
    permits(1)
    mine = held(1)
    assert verbs.release_all(connection, SemaphorePermit, mine, 0.0, Where(" AND 1 = %s", (2,))) == 0
    assert verbs.release_all(connection, SemaphorePermit, mine, 0.0, Where(" AND 1 = %s", (1,))) == 1
