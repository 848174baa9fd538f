"""The background thread of a database runs its routines in a fixed order, and its session is closed when idle."""

import math
import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError, connection, connections

from resourcepool.clock import monotonic
from resourcepool.db import background as module
from resourcepool.db.background import (
    HISTORY,
    ORDER,
    RENEWALS,
    BackgroundThread,
    OwnConnections,
    background_thread,
    own_connections,
)
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import StatementAttempt


def never() -> bool:
    return False


def always() -> bool:
    return True


@pytest.fixture
def thread() -> BackgroundThread:
    """One whose turns the test takes."""
    return BackgroundThread("default")


def run_due(thread: BackgroundThread) -> None:
    """Run what is due until nothing is."""
    thread._receive(0)
    with own_connections() as own:
        while (routine := thread._due_routine()) is not None:
            thread._take_turn(routine, own)
            thread._receive(0)


def test_if_several_are_due_the_renewals_run_first(thread: BackgroundThread) -> None:
    ran: list[str] = []

    def noted(name: str) -> Callable[[], float]:
        return lambda: ran.append(name) or math.inf  # type: ignore[func-returns-value]

    routines = [thread.routine(name, noted(name), never) for name in reversed(ORDER)]
    for routine in routines:
        routine.bring_forward(monotonic())
    run_due(thread)
    assert ran == list(ORDER)


def test_renewals_run_between_two_batches_of_the_history(thread: BackgroundThread) -> None:
    ran: list[str] = []

    def write_a_batch() -> float:
        ran.append(HISTORY)
        renewals.wake()
        return monotonic() if ran.count(HISTORY) < 3 else math.inf

    renewals = thread.routine(RENEWALS, lambda: ran.append(RENEWALS) or math.inf, never)  # type: ignore[func-returns-value]
    thread.routine(HISTORY, write_a_batch, never).wake()
    run_due(thread)
    assert ran == [HISTORY, RENEWALS] * 3


def test_one_that_fails_runs_again_and_delays_no_other(
    thread: BackgroundThread, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> float:
        raise ZeroDivisionError

    failing = thread.routine(RENEWALS, fail, always)
    works = thread.routine(HISTORY, lambda: 7.0 + monotonic(), never)
    for routine in (failing, works):
        routine.wake()
    run_due(thread)
    assert "renewals on database 'default' failed" in caplog.text
    assert failing.next_at < works.next_at


def test_one_that_fails_without_work_is_not_run_again(thread: BackgroundThread) -> None:
    """Or it would fail for ever: for example, on a database that is no longer configured."""

    def fail() -> float:
        raise ZeroDivisionError

    failing = thread.routine(RENEWALS, fail, never)
    failing.wake()
    run_due(thread)
    assert failing.next_at == math.inf
    failing.wake()
    assert not thread.requests.empty(), "and it can be woken"


def test_only_the_first_of_several_failures_is_logged(
    thread: BackgroundThread, caplog: pytest.LogCaptureFixture
) -> None:
    ends = [ZeroDivisionError, ZeroDivisionError, None, ZeroDivisionError]

    def turn() -> float:
        if error := ends.pop(0):
            raise error
        return math.inf

    routine, counts = thread.routine(RENEWALS, turn, always), []
    while ends:
        routine.wake()
        run_due(thread)
        counts.append(caplog.text.count("renewals on database 'default' failed"))
    assert counts == [1, 1, 1, 2]


def test_a_request_during_its_turn_is_kept(thread: BackgroundThread) -> None:
    turns: list[float] = []

    def turn() -> float:
        turns.append(1)
        if len(turns) == 1:
            routine.wake()
        return math.inf

    routine = thread.routine(HISTORY, turn, never)
    routine.wake()
    run_due(thread)
    assert len(turns) == 2


class TestStatementsOfTheOtherRoutines:
    def test_end_before_a_renewal_is_late(self, thread: BackgroundThread) -> None:
        limits: list[float | None] = []

        def note() -> float:
            attempt = StatementAttempt(connection)
            limits.append(attempt.ends_by() if attempt.ends_by is not None else None)
            return math.inf

        thread.routine(RENEWALS, note, never, needed_by=lambda now: now + 0.25).wake()
        thread.routine(HISTORY, note, never).wake()
        before = monotonic()
        run_due(thread)
        of_renewals, of_history = limits
        assert of_renewals is None
        assert of_history is not None
        assert before + 0.25 <= of_history <= monotonic() + 0.25

    def test_are_not_sent_again_after_that(
        self, thread: BackgroundThread, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[int] = []
        monkeypatch.setattr("resourcepool.db.dialect.error_kind", lambda *_: ErrorKind.BUSY)

        def write() -> float:
            def send() -> None:
                sent.append(1)
                raise OperationalError("a row is locked")

            retrying(connection, send)
            return math.inf

        thread.routine(RENEWALS, lambda: math.inf, never, needed_by=lambda now: now)
        writes = thread.routine(HISTORY, write, never)
        with own_connections() as own:
            thread._take_turn(writes, own)
        assert len(sent) == 1


@pytest.mark.django_db(transaction=True)
def test_its_session_is_closed_when_it_has_been_idle_and_opened_again_on_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "IDLE", 0.05)
    closed, close = threading.Semaphore(0), OwnConnections.close
    monkeypatch.setattr(OwnConnections, "close", lambda own: (close(own), closed.release()))
    sent: list[int] = []

    def ask() -> float:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
            sent.append(1)
        return math.inf

    thread = BackgroundThread("default")
    routine = thread.routine(HISTORY, ask, never)
    thread.daemon.ensure_started()
    for count in (1, 2):
        routine.wake()
        assert closed.acquire(timeout=20)
        assert len(sent) == count


def test_a_database_has_one() -> None:
    mine = background_thread("default")
    assert background_thread("default") is mine
    assert background_thread("other") is not mine
