"""The promises of every kind of leased row about time: late callers, clocks, and concurrent callers."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from resourcepool.db.dialect import DbLater, read_clock
from resourcepool.leases import statements, verbs
from tests.app.models import Bare
from tests.app.rows import Model, change, claim, columns, expire, granted, lasts, new, several, steal, wanted
from tests.eventually import InBackground, at_once, eventually

ROUNDS = 25
ROUNDED = datetime.timedelta(milliseconds=1)  # as SQLite's clock is


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


def _holds_somebody_up(other: BaseDatabaseWrapper) -> bool:
    with other.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND PG_BACKEND_PID() = ANY(PG_BLOCKING_PIDS(pid))"
        )
        return cursor.fetchone() is not None


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
        assert lasts(row, 60)
        assert claim(row) is None
        assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], 90) == 1
        assert lasts(row, 90)
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
        assert lasts(row, 60)
        assert verbs.renew(other, type(row), [(row.pk, grant.fence)], 90) == 1
        assert lasts(row, 90)
        expire(row)
        assert verbs.claim(other, type(row), row.pk, wanted()) is not None

    @pytest.mark.only("postgresql")  # the clock of the others stands still while a statement waits
    @pytest.mark.parametrize("verb", ["renew", "adopt"])
    def test_a_lease_that_ran_out_while_its_renewal_waited_for_the_row_is_lost(
        self, other: BaseDatabaseWrapper, verb: str
    ) -> None:
        row = new(Bare)
        held, table = [(row.pk, granted(row).fence)], Bare._meta.db_table
        texts = ["another"] if verb == "adopt" else []
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT 1 FROM {table} FOR UPDATE")
            waiting = InBackground(lambda: statements.change(connection, Bare, verb, held, 60.0, *texts))
            eventually(lambda: _holds_somebody_up(other) or not waiting.is_alive())
            cursor.execute(f"UPDATE {table} SET busy_before = CLOCK_TIMESTAMP()")
            cursor.execute("COMMIT")
        assert waiting.result() == 0

    def test_fractions_of_a_second_count(self, row: Any) -> None:
        change(row, busy_before=DbLater(0.9))
        until = columns(row)["busy_before"]
        assert claim(row) is None or read_clock(connection) >= until
        change(row, busy_before=DbLater(-0.002))
        for verb, seconds in (("claim", 60.8), ("renew", 90.5)):
            before = read_clock(connection)
            if verb == "claim":
                grant = granted(row, ttl=seconds)
            else:
                assert verbs.renew(connection, type(row), [(row.pk, grant.fence)], seconds) == 1
            given = columns(row)["busy_before"] - datetime.timedelta(seconds=seconds)
            assert before - ROUNDED <= given <= read_clock(connection) + ROUNDED, verb

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
