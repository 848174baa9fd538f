"""Periodic work: one run at a time, and its result is recorded."""

import re
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import translation

from resourcepool.elections import Election
from resourcepool.events import localized, sentence_for
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.health_checks.check import CheckAction, CheckResult, Tally
from resourcepool.health_checks.lease import SKIP_REASONS
from resourcepool.jobs import MAX_RESULT, run
from resourcepool.models import Job
from resourcepool.status.internals import jobs
from tests.app.rows import change, columns, steal
from tests.eventually import InBackground


def test_is_done_and_what_came_of_it_is_written_down() -> None:
    assert run("sweep", lambda lease: "3 swept") == "3 swept"
    status = jobs()["sweep"]
    assert (status.result, status.holder, status.failed) == ("3 swept", "", None)
    assert status.done is not None
    assert status.done < 30


def test_is_not_done_while_somebody_else_does_it() -> None:
    def work(lease: Any) -> str:
        assert InBackground(lambda: run("sweep", lambda _: "twice")).result() is None
        assert jobs()["sweep"].holder == lease.holder
        return "once"

    assert run("sweep", work) == "once"
    assert run("sweep", lambda _: "again") == "again"


def test_different_jobs_do_not_hold_each_other_up() -> None:
    assert run("sweep", lambda _: run("prune", lambda _: "inner") or "") == "inner"


def test_a_failure_is_raised_and_written_down_until_it_succeeds_again() -> None:
    def fail(_: Any) -> str:
        raise LookupError("the target\nis gone")

    run("check", lambda _: "fine")
    with pytest.raises(LookupError):
        run("check", fail)
    status = jobs()["check"]
    assert status.failed is not None
    assert status.done is not None
    assert status.result == "LookupError: the target is gone"
    run("check", lambda _: "fine")
    assert jobs()["check"].failed is None


class TestLong:
    """What does not fit into the row is cut, which can be seen; what came of the largest check fits."""

    def test_every_reason_for_which_a_check_may_skip(self) -> None:
        tally = Tally()
        for why in [*SKIP_REASONS.values(), sentence_for("does_not_exist")]:
            for _ in range(5_037):
                tally(CheckResult(1, "", None, None, why, CheckAction.SKIPPED))
        whole = str(tally)
        assert run("check", lambda _: whole) == whole
        written = Job.objects.get().result
        assert written == whole
        with translation.override("zh-hans"):
            said = localized(written)
        assert not set(re.findall("[a-z]+", said))

    @pytest.mark.parametrize("text", ["x" * 2_001, "x" * 1_990 + "; and so on; and so forth", "; " * 3_000])
    def test_a_text_that_is_too_long_is_seen_to_be_cut(self, text: str) -> None:
        run("sweep", lambda _: text)
        written = Job.objects.get().result
        assert len(written) == MAX_RESULT
        assert written.endswith("…")

    def test_so_is_what_is_said_of_a_failure(self) -> None:
        def fail(_: Any) -> str:
            raise LookupError("gone " * 1_000)

        with pytest.raises(LookupError):
            run("sweep", fail)
        assert re.fullmatch("LookupError: (gone ?)+…", Job.objects.get().result)


def test_one_whose_process_crashed_is_done_by_the_next_after_its_ttl() -> None:
    run("sweep", lambda _: "")
    row = Job.objects.get()
    steal(row, holder="dead")
    assert run("sweep", lambda _: "") is None
    change(row, busy_before=row.busy_before)
    assert run("sweep", lambda _: "taken over") == "taken over"


def test_one_that_lost_its_lease_is_told_and_overwrites_nothing() -> None:
    def slow(lease: Any) -> str:
        steal(Job.objects.get(), holder="another")
        with pytest.raises(LeaseLost):
            lease.renew()
        return "late"

    with pytest.raises(LeaseLost):
        run("sweep", slow)
    row = Job.objects.get()
    assert columns(row)["result"] == ""
    assert columns(row)["holder"] == "another"


@pytest.mark.parametrize("is_taken", [False, True])
def test_one_that_lost_its_lease_has_not_failed(is_taken: bool) -> None:
    def slow(lease: Any) -> str:
        if is_taken:
            steal(Job.objects.get(), holder="another")
        lease._lose("it stood still for too long")
        lease.ensure_held()
        return "late"

    with pytest.raises(LeaseLost):
        run("sweep", slow)
    assert jobs()["sweep"].failed is None


def test_one_that_loses_another_lease_has_failed() -> None:
    def borrows(_: Any) -> str:
        other = Election("another job", Job).try_now()
        assert other is not None
        other._lose("for a test")
        other.ensure_held()
        return "late"

    with pytest.raises(LeaseLost):
        run("sweep", borrows)
    assert jobs()["sweep"].failed is not None


def test_what_a_job_has_met_is_raised_even_if_it_cannot_be_written_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(send: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError("gone for good")
        return send(sql, *rest)

    def fail(_: Any) -> str:
        stack.enter_context(connection.execute_wrapper(refuse))
        raise DatabaseUnavailable("in the middle of it")

    with ExitStack() as stack, pytest.raises(DatabaseUnavailable, match="in the middle of it"):
        run("sweep", fail)
    (said,) = (
        text for text in caplog.messages if text.startswith("the failure of job 'sweep' was not recorded")
    )
    assert said.endswith("gone for good")
