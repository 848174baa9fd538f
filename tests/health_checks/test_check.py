"""The actions after checks of resources; leases of other holders are never touched."""

import re
from typing import Any

import pytest
from django.db import transaction

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption, ClaimInTransaction
from resourcepool.health_checks import check as checking
from resourcepool.health_checks.check import CheckAction, CheckResult, Tally, check
from resourcepool.health_checks.checker import Finding
from resourcepool.health_checks.lease import find_candidates, lease_candidate
from resourcepool.models import Proxy
from resourcepool.resources.state import Status, Verdict
from resourcepool.signals import EventKind, RowEvent
from tests.app.rows import busy_for, change, columns, expire, granted, hold, new, several
from tests.committed import Statement
from tests.health_checks.check_helpers import check_rows
from tests.health_checks.scripted_checker import BAD, GOOD, UNKNOWN, ScriptedChecker
from tests.waiting.threads import ticket

pytestmark = pytest.mark.usefixtures("scripted")


def test_nothing_is_checked_inside_an_open_transaction() -> None:
    row = new(Proxy)
    before = columns(row)
    with pytest.raises(ClaimInTransaction, match="a transaction is open"), transaction.atomic():
        check(Proxy)
    assert columns(row) == before


class TestFree:
    def test_the_end_of_a_lease_that_ran_out_is_told_by_the_check_that_takes_it(
        self, told: list[RowEvent]
    ) -> None:
        row = new(Proxy)
        dead = granted(row, "crawler 7")
        expire(row)
        check_rows()
        expired, looked = told
        assert (expired.kind, expired.fence, expired.holder) == (EventKind.EXPIRED, dead.fence, "crawler 7")
        assert looked.kind is EventKind.CHECKED

    def test_but_not_of_one_that_others_have_cleared_meanwhile(self, told: list[RowEvent]) -> None:
        row = new(Proxy)
        dead = granted(row, "crawler 7")
        expire(row)
        (candidate,) = find_candidates(Proxy, None, any_quarantine=False, skip_checked_within=0)
        change(row, fence=dead.fence + 1, holder="")
        lease: Any = lease_candidate(Proxy, candidate)
        lease.restore()
        assert told == []

    @pytest.mark.parametrize("finding", [GOOD, UNKNOWN])
    def test_one_that_is_not_bad_is_free_again_and_its_verdict_is_kept(self, finding: Finding) -> None:
        row = new(Proxy)
        ScriptedChecker.finds = {row.pk: finding}
        of = (row.pk, str(row), finding.verdict, finding.seconds, finding.why)
        assert check_rows()[row.pk] == CheckResult(*of, CheckAction.NOTHING)
        now = columns(row)
        assert (now["verdict"], now["latency"], now["holder"]) == (finding.verdict, finding.seconds, "")
        assert (now["status"], now["checked_at"] is None) == ("in_service", False)
        assert busy_for(row) <= 0

    def test_a_bad_one_is_quarantined_longer_each_time(self) -> None:
        row = new(Proxy)
        ScriptedChecker.finds = {row.pk: BAD}
        assert check_rows()[row.pk].done is CheckAction.QUARANTINED
        now = columns(row)
        assert (now["status"], now["reason"], now["strikes"]) == (
            "quarantined",
            "check: refused the connection",
            1,
        )
        assert 290 < busy_for(row) < 380
        check_rows()
        assert columns(row)["strikes"] == 2
        assert busy_for(row) > 590

    def test_no_cool_down_follows(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "COOLDOWN": 50}
        row = new(Proxy)
        check_rows()
        assert busy_for(row) <= 0

    def test_the_longest_hold_of_the_pool_is_not_for_checks(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "MAX_HOLD": 0.1, "LEAK_AFTER": 0.001}
        row = new(Proxy)
        (candidate,) = find_candidates(Proxy, [row.pk], any_quarantine=False, skip_checked_within=0)
        lease: Any = lease_candidate(Proxy, candidate)
        assert lease.remaining > 50
        assert lease._terms.leak_after is None
        lease.release()


class TestInLine:
    def test_somebody_who_wants_what_is_not_there_keeps_nothing_from_being_checked(self) -> None:
        rows = several(Proxy, 3, country="DE")
        ticket(Proxy, selector='{"country": "AQ"}', count=2)
        found = check_rows()
        assert [found[row.pk].verdict for row in rows] == [Verdict.OK] * 3

    @pytest.mark.parametrize("asked", [{}, {"count": 3}, {"selector": '{"country": ["DE", "US"]}', "count": 3}])
    def test_somebody_in_line_is_given_what_is_about_to_be_checked_and_no_more(self, asked: Any) -> None:
        one, *others = several(Proxy, 5, country="DE")
        waits = ticket(Proxy, **asked)
        assert check_rows(one)[one.pk].done is CheckAction.SKIPPED
        assert columns(one)["holder"] == waits.holder
        assert {columns(row)["holder"] for row in others} == {""}

    def test_how_much_there_is_does_not_make_one_of_them_take_longer(self, statements: list[Statement]) -> None:
        row, *_ = several(Proxy, 3, country="DE")
        ticket(Proxy, selector='{"country": "AQ"}')
        (candidate,) = find_candidates(Proxy, [row.pk], any_quarantine=False, skip_checked_within=0)
        statements.clear()
        lease: Any = lease_candidate(Proxy, candidate)
        lease.release()
        read = [
            one.sql for one in statements if "resourcepool_proxy" in one.sql and one.sql.startswith("SELECT")
        ]
        assert read
        assert all(re.search(r"\bid\W* = ", sql.partition("WHERE")[2]) for sql in read)

    def test_somebody_who_came_after_the_row_was_read_is_before_the_check(self) -> None:
        row = new(Proxy)
        (candidate,) = find_candidates(Proxy, None, any_quarantine=False, skip_checked_within=0)
        change(row, fence=candidate.fence + 2)  # used meanwhile
        waits = ticket(Proxy)
        assert lease_candidate(Proxy, candidate) is None
        assert columns(row)["holder"] == waits.holder


class TestSkipped:
    def test_what_somebody_has_or_put_away_is_left_alone_and_told_why(self) -> None:
        due_to_somebody, held = new(Proxy, country="US"), new(Proxy)
        retired, quarantined = new(Proxy, in_service=False, status=Status.RETIRED), new(Proxy)
        out, cooling = new(Proxy, in_service=False), new(Proxy, busy_before=DbLater(50))
        Proxy.objects.filter(pk=quarantined.pk).quarantine("vendor has it", 600)
        ticket(Proxy, selector='{"country": "US"}')
        lease, tally, whys = hold(held), Tally(), dict[Any, str]()
        rows = (due_to_somebody, held, retired, quarantined, out, cooling)
        before = [columns(row) for row in rows[1:]]

        def on_result(one: CheckResult) -> None:
            assert one.done is CheckAction.SKIPPED
            whys[one.pk] = one.why
            tally(one)

        check(Proxy, [row.pk for row in rows], on_result=on_result)
        assert [whys[row.pk] for row in rows] == [
            *("in use", "in use", "retired", "in a quarantine not set by a check"),
            *("out of service", "cooling down"),
        ]
        assert [columns(row) for row in rows[1:]] == before
        assert str(tally) == (
            "0 ok, 0 bad, 0 unknown; 2 skipped: in use; 1 skipped: cooling down;"
            " 1 skipped: in a quarantine not set by a check; 1 skipped: out of service; 1 skipped: retired"
        )
        lease.renew()

    @pytest.mark.parametrize("number", [3, 30])
    def test_why_is_read_once_for_all_that_others_were_faster_to_claim(
        self, number: int, monkeypatch: pytest.MonkeyPatch, statements: list[Statement]
    ) -> None:
        rows = several(Proxy, number)
        monkeypatch.setattr(checking, "lease_candidate", lambda *_: None)
        found: list[CheckResult] = []
        statements.clear()
        check(Proxy, on_result=found.append)
        assert [one.sql for one in statements if "resourcepool_proxy" in one.sql][
            2:-1
        ] == []  # two that find them
        assert {(one.pk, one.why) for one in found} == {(row.pk, "briefly busy") for row in rows}

    def test_those_deleted_meanwhile_are_read_together_and_the_others_are_checked(
        self, monkeypatch: pytest.MonkeyPatch, statements: list[Statement]
    ) -> None:
        rows = several(Proxy, 20)
        gone = {row.pk for row in rows[::2]}

        def deleted_meanwhile(model: Any, candidate: Any, actor: str) -> Any:
            lease = lease_candidate(model, candidate, actor)
            Proxy.objects.filter(pk__in=gone & {candidate.pk})._raw_delete("default")
            return lease

        monkeypatch.setattr(checking, "lease_candidate", deleted_meanwhile)
        found: list[CheckResult] = []
        check(Proxy, on_result=found.append)
        missing = [one for one in found if one.pk in gone]
        assert {(one.pk, one.why) for one in missing} == {(pk, "does not exist") for pk in gone}
        assert sum(" IN (" in one.sql for one in statements if "SELECT" in one.sql) == 1
        assert {one.verdict for one in found if one.pk not in gone} == {Verdict.OK}
        assert {columns(row)["holder"] for row in rows[1::2]} == {""}

    def test_those_that_were_asked_for_by_key_are_told_in_that_order(self) -> None:
        rows = [new(Proxy, in_service=False) for _ in range(20)]
        asked, found = [row.pk for row in reversed(rows)], list[CheckResult]()
        check(Proxy, [*asked, *asked], on_result=found.append)
        assert [one.pk for one in found] == asked

    def test_what_was_checked_lately(self) -> None:
        late, early, never = new(Proxy), new(Proxy), new(Proxy)
        change(late, checked_at=DbLater(-10))
        change(early, checked_at=DbLater(-500))
        assert set(check_rows(skip_checked_within=300)) == {early.pk, never.pk}


def test_what_is_told_is_the_check_and_not_its_lease(told: list[RowEvent]) -> None:
    good, bad = new(Proxy), new(Proxy)
    ScriptedChecker.finds = {bad.pk: BAD}
    check_rows()
    of = {row.pk: [event for event in told if event.pk == row.pk] for row in (good, bad)}
    assert [(event.kind, event.reason, event.seconds) for event in of[good.pk]] == [
        (EventKind.CHECKED, "ok", 0.1)
    ]
    first, second = of[bad.pk]
    assert (first.kind, first.reason, first.seconds) == (EventKind.CHECKED, "bad: refused the connection", 0.2)
    assert second.kind is EventKind.QUARANTINED


def test_a_model_that_the_settings_do_not_mention_cannot_be_checked(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
    with pytest.raises(BadOption, match=r"CHECKS.*resourcepool.Proxy.*how-to/health-checks"):
        check(Proxy)
