"""Checks of quarantined resources, and of those whose lease is revoked during the check."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import LeaseLost
from resourcepool.health_checks.check import CheckAction, CheckResult, check
from resourcepool.health_checks.checker import Finding
from resourcepool.health_checks.lease import find_candidates, lease_candidate
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind, RowEvent
from tests.app.rows import busy_for, columns, hold, new
from tests.health_checks.check_helpers import check_rows, quarantined
from tests.health_checks.scripted_checker import BAD, GOOD, UNKNOWN, ScriptedChecker

pytestmark = pytest.mark.usefixtures("scripted")


def quarantined_at_release() -> Any:
    """Return a resource that was put into quarantine while it was leased."""
    away = {"status": Status.QUARANTINED, "in_service": False, "until": DbLater(1_000)}
    return new(Proxy, reason="403 from the shop", fence=7, **away)


class TestInQuarantine:
    def test_a_good_one_is_returned_to_service(self, told: list[RowEvent]) -> None:
        row = quarantined()
        assert check_rows()[row.pk].done is CheckAction.RETURNED
        now = columns(row)
        assert (now["status"], now["reason"], now["strikes"], now["until"]) == ("in_service", "", 0, None)
        assert busy_for(row) <= 0
        assert [event.kind for event in told] == [EventKind.CHECKED, EventKind.RETURNED]

    def test_one_that_is_still_bad_stays_for_longer(self) -> None:
        row = quarantined(struck_at=DbLater(-60))
        ScriptedChecker.finds = {row.pk: BAD}
        assert check_rows()[row.pk].done is CheckAction.QUARANTINED
        assert columns(row)["strikes"] == 4
        assert busy_for(row) > 2_000

    def test_what_an_operator_or_a_crawler_put_there_is_theirs(self) -> None:
        row = quarantined("403 from the shop")
        before = columns(row)
        assert check_rows() == {}
        assert columns(row) == before

    def test_unless_that_is_asked_for(self) -> None:
        row = quarantined("403 from the shop")
        assert check_rows(any_quarantine=True)[row.pk].done is CheckAction.RETURNED

    @pytest.mark.parametrize("make", [lambda: quarantined("vendor has it"), quarantined_at_release])
    def test_then_a_bad_verdict_neither_shortens_it_nor_takes_its_reason(self, make: Any) -> None:
        row = make()
        before = columns(row)
        ScriptedChecker.finds = {row.pk: BAD}
        assert check_rows(any_quarantine=True)[row.pk].done is CheckAction.NOTHING
        now = columns(row)
        kept = ("until", "reason", "status", "strikes", "in_service")
        assert [now[name] for name in kept] == [before[name] for name in kept]
        assert now["busy_before"] == before["until"]
        assert (now["verdict"], now["holder"]) == ("bad", "")

    def test_what_comes_of_it_is_told_with_the_name_of_who_asked(self, told: list[RowEvent]) -> None:
        returned, away = quarantined(), new(Proxy)
        ScriptedChecker.finds = {away.pk: BAD}
        check_rows(actor="alice")
        assert {event.kind for event in told} == {EventKind.CHECKED, EventKind.RETURNED, EventKind.QUARANTINED}
        assert {event.actor for event in told} == {"alice"}
        assert {event.pk for event in told} == {returned.pk, away.pk}

    def test_one_that_was_parked_anew_is_not_taken(self) -> None:
        row = quarantined()
        (candidate,) = find_candidates(Proxy, None, any_quarantine=False, skip_checked_within=0)
        Proxy.objects.quarantine("by alice", 5_000)
        before = columns(row)
        assert lease_candidate(Proxy, candidate) is None
        assert columns(row) == before

    def test_an_operator_who_decides_meanwhile_has_the_last_word(self) -> None:
        row = quarantined()

        def drain(_: Any) -> None:
            Proxy.objects.filter(pk=row.pk).drain("by alice")

        ScriptedChecker.meanwhile = staticmethod(drain)
        assert check_rows()[row.pk].done is CheckAction.NOTHING
        now = columns(row)
        assert (now["in_service"], now["status"], now["reason"]) == (False, "out_of_service", "by alice")


class TestInQuarantineSinceItsLease:
    def test_a_good_one_is_returned_to_service_if_that_is_asked_for(self) -> None:
        row = quarantined_at_release()
        assert check_rows() == {}
        assert check_rows(any_quarantine=True)[row.pk].done is CheckAction.RETURNED
        assert columns(row)["in_service"]

    def test_an_operator_who_quarantines_it_anew_meanwhile_has_the_last_word(self) -> None:
        row = quarantined_at_release()

        def put_away(_: Any) -> None:
            Proxy.objects.filter(pk=row.pk).quarantine("by alice", 5_000)

        ScriptedChecker.meanwhile = staticmethod(put_away)
        assert check_rows(any_quarantine=True)[row.pk].done is CheckAction.NOTHING
        now = columns(row)
        assert (now["status"], now["reason"], now["holder"]) == ("quarantined", "by alice", "")


class TestTaken:
    @pytest.mark.parametrize("finding", [GOOD, BAD, UNKNOWN])
    @pytest.mark.parametrize("make", [lambda: new(Proxy), quarantined])
    def test_what_was_freed_meanwhile_is_its_new_holders(self, make: Any, finding: Finding) -> None:
        row, held = make(), []
        ScriptedChecker.finds = {row.pk: finding}

        def free(_: Any) -> None:
            Proxy.objects.filter(pk=row.pk).revoke("stuck")
            held.append(hold(row))

        ScriptedChecker.meanwhile = staticmethod(free)
        found: list[CheckResult] = []
        check(Proxy, on_result=found.append)
        assert [one.done for one in found] == [CheckAction.LOST]
        held[0].renew()
        assert columns(row)["verdict"] == ""


def test_a_lease_of_a_check_is_lost_like_any_other() -> None:
    row = quarantined()
    (candidate,) = find_candidates(Proxy, None, any_quarantine=False, skip_checked_within=0)
    lease: Any = lease_candidate(Proxy, candidate)
    Proxy.objects.filter(pk=row.pk).revoke("stuck")
    with pytest.raises(LeaseLost):
        lease.restore()
