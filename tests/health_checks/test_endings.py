"""Checks that fail leave no lease behind, and reveal no secrets."""

import math
import threading
from typing import Any

import pytest

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.health_checks.check import CheckAction, check
from resourcepool.health_checks.checker import MAX_TEXT, Finding
from resourcepool.health_checks.lease import CheckLease
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.state import Verdict
from tests.app.rows import busy_for, columns, new, several
from tests.health_checks.check_helpers import check_rows, quarantined
from tests.health_checks.scripted_checker import BAD, ScriptedChecker

pytestmark = pytest.mark.usefixtures("scripted")


class TestEndings:
    def test_a_database_that_has_gone_away_is_not_asked_again_for_each(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        several(Proxy, 5)
        asked = []

        def gone(lease: Any) -> None:
            asked.append(lease)
            raise DatabaseUnavailable("gone")

        def fail() -> None:
            if keeper.leases():
                monkeypatch.setattr(CheckLease, "restore", gone)
                gate.set()
                raise DatabaseUnavailable("gone")

        gate = threading.Event()
        ScriptedChecker.meanwhile = staticmethod(lambda _: gate.wait(10))
        with pytest.raises(DatabaseUnavailable):
            check(Proxy, checkpoint=fail)
        assert len(asked) == 1
        assert "could not release 5 resources" in caplog.text
        assert not keeper.leases()  # nothing renews them: they lapse

    def test_an_interruption_gives_everything_back_as_it_was(self) -> None:
        rows = [*several(Proxy, 5), quarantined()]
        ScriptedChecker.finds = {row.pk: BAD for row in rows[:3]}
        gate, turns = threading.Event(), iter(range(1_000))

        def look(row: Any) -> None:
            if row.pk in (rows[4].pk, rows[5].pk):
                gate.wait(10)

        def interrupt() -> None:
            if next(turns) and {columns(row)["holder"] for row in rows[3:4]} == {""}:
                gate.set()
                raise KeyboardInterrupt

        ScriptedChecker.meanwhile = staticmethod(look)
        with pytest.raises(KeyboardInterrupt):
            check(Proxy, checkpoint=interrupt)
        assert not keeper.leases()
        assert [busy_for(row) <= 0 for row in rows] == [True] * 5 + [False]
        assert {columns(row)["status"] for row in rows[:5]} == {"in_service"}
        assert {columns(row)["holder"] for row in rows} == {""}
        assert [columns(row)["verdict"] for row in rows] == ["", "", "", "ok", "", ""]

    def test_an_interruption_of_the_giving_back_leaves_nothing_that_is_renewed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        several(Proxy, 3)

        def interrupted(lease: Any, *_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(CheckLease, "restore", interrupted)
        with pytest.raises(KeyboardInterrupt):
            check(Proxy)
        assert not keeper.leases()

    def test_it_waits_for_those_that_are_being_looked_at(self) -> None:
        row, gate = new(Proxy), threading.Event()
        ScriptedChecker.meanwhile = staticmethod(lambda _: gate.wait(10))
        turns = iter(range(100))

        def interrupt() -> None:
            if next(turns) == 1:
                threading.Timer(0.2, gate.set).start()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            check(Proxy, checkpoint=interrupt)
        assert gate.is_set()
        assert columns(row)["holder"] == ""

    def test_a_checker_that_never_comes_back_is_not_waited_for(self, settings: Any) -> None:
        chosen = {**settings.RESOURCEPOOL["CHECKS"]["resourcepool.Proxy"], "timeout": 0.1}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
        row, gate = new(Proxy), threading.Event()
        ScriptedChecker.meanwhile = staticmethod(lambda _: gate.wait(30))
        found = check_rows()[row.pk]
        gate.set()
        assert (found.verdict, found.why) == (Verdict.UNKNOWN, "the checker did not return in time")

    def test_what_a_checker_raises_counts_as_unknown_and_its_words_are_not_repeated(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        row = new(Proxy)

        def fail(_: Any) -> None:
            raise LookupError("http://joe:c4n4ry@p.example")

        ScriptedChecker.meanwhile = staticmethod(fail)
        found = check_rows()[row.pk]
        assert (found.verdict, found.why) == (Verdict.UNKNOWN, "the checker failed (LookupError)")
        assert "c4n4ry" not in caplog.text

    @pytest.mark.parametrize(
        "nonsense",
        [
            None,
            "ok",
            Finding("fine"),
            Finding(Verdict.OK, "fine"),
            Finding(Verdict.OK, math.nan),
            Finding(Verdict.OK, -1),
        ],  # type: ignore[arg-type]
    )
    def test_so_does_nonsense(self, nonsense: Any) -> None:
        row = new(Proxy)
        ScriptedChecker.finds = {row.pk: nonsense}
        assert check_rows()[row.pk].verdict is Verdict.UNKNOWN

    def test_hostile_words_of_a_checker_become_one_short_line(self) -> None:
        row = new(Proxy)
        ScriptedChecker.finds = {
            row.pk: Finding(Verdict.BAD, 0.1, "no\r\n\x1b[31m<b>tone</b>\x00 " + "x" * 500)
        }
        why = check_rows()[row.pk].why
        assert why.startswith("no [31m<b>tone</b> xxx")
        assert len(why) == MAX_TEXT
        assert columns(row)["reason"] == f"check: {why}"

    def test_a_bad_one_without_words_is_quarantined_all_the_same(self) -> None:
        row = new(Proxy)
        ScriptedChecker.finds = {row.pk: Finding(Verdict.BAD)}
        assert check_rows()[row.pk].done is CheckAction.QUARANTINED
