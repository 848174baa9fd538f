"""Many resources checked together: when the checker is blamed, and the size of batches."""

import threading
from typing import Any

import pytest

from resourcepool.exceptions import CheckerBroken
from resourcepool.health_checks import check as checking
from resourcepool.health_checks.check import CheckAction, Tally, check
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.state import Verdict
from resourcepool.signals import RowEvent
from tests.app.rows import busy_for, columns, new, several
from tests.health_checks.check_helpers import check_rows, quarantined
from tests.health_checks.scripted_checker import BAD, ScriptedChecker

pytestmark = pytest.mark.usefixtures("scripted")


class TestManyFailTogether:
    def test_the_checker_is_blamed_and_nothing_is_changed(self) -> None:
        rows = [*several(Proxy, 6), quarantined(), new(Proxy, verdict=Verdict.BAD)]
        ScriptedChecker.finds = {row.pk: BAD for row in rows}
        before = {row.pk: columns(row) for row in rows}
        found = Tally()
        with pytest.raises(CheckerBroken, match="6 of 6 failed together"):
            check(Proxy, on_result=found)
        for row in rows:
            now = columns(row)
            same = [name for name in now if name not in ("fence", "busy_before")]
            assert {name: now[name] for name in same} == {name: before[row.pk][name] for name in same}
        assert [busy_for(row) <= 0 for row in rows] == [True] * 6 + [False, True]
        assert found.verdicts == {Verdict.BAD: 8}
        assert found.done == {CheckAction.NOTHING: 8}
        assert not keeper.leases()

    def test_unless_it_is_to_be_believed(self) -> None:
        rows = several(Proxy, 6)
        ScriptedChecker.finds = {row.pk: BAD for row in rows}
        assert {one.done for one in check_rows(believe=True).values()} == {CheckAction.QUARANTINED}

    def test_the_rest_is_not_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checking, "MAX_BATCH", 10)
        rows = several(Proxy, 25)
        ScriptedChecker.finds = {row.pk: BAD for row in rows}
        seen: list[Any] = []
        ScriptedChecker.meanwhile = staticmethod(seen.append)
        with pytest.raises(CheckerBroken):
            check(Proxy)
        assert len(seen) == 10


class TestDryRun:
    def test_looks_and_changes_nothing(self, told: list[RowEvent]) -> None:
        rows = [new(Proxy), new(Proxy), quarantined(), quarantined()]
        ScriptedChecker.finds = {rows[1].pk: BAD, rows[3].pk: BAD}
        before = [columns(row) for row in rows]
        found = check_rows(dry_run=True)
        assert [found[row.pk].verdict for row in rows] == ["ok", "bad", "ok", "bad"]
        for row, was in zip(rows, before, strict=True):
            now = columns(row)
            same = [name for name in now if name not in ("fence", "busy_before")]
            assert {name: now[name] for name in same} == {name: was[name] for name in same}
        assert [columns(row)["busy_before"] for row in rows[2:]] == [was["until"] for was in before[2:]]
        assert told == []


class TestAtOnce:
    def test_as_many_as_the_settings_say_and_no_more(self, settings: Any) -> None:
        chosen = {**settings.RESOURCEPOOL["CHECKS"]["resourcepool.Proxy"], "at_once": 4}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
        several(Proxy, 12)
        barrier, most, inside, lock = threading.Barrier(4), 0, 0, threading.Lock()

        def look(_: Any) -> None:
            nonlocal most, inside
            with lock:
                inside += 1
                most = max(most, inside)
            barrier.wait(10)  # four of them must be here together
            with lock:
                inside -= 1

        ScriptedChecker.meanwhile = staticmethod(look)
        assert len(check_rows()) == 12
        assert most == 4
