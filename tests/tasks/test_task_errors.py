"""The end of a Celery task after an error: its result and its line in Celery's log."""

from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from resourcepool import tasks
from resourcepool.models import Job
from resourcepool.sweeps import sweep as sweeps
from tests.app.rows import steal


def test_one_that_stood_still_for_too_long_is_being_done_elsewhere_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stands_still(lease: Any) -> int:
        steal(Job.objects.get(), holder="the next one")
        lease.renew()
        raise AssertionError

    monkeypatch.setattr(sweeps, "prune_history", stands_still)
    done = tasks.prune_history.apply()
    assert (done.state, done.result) == ("SUCCESS", tasks.TAKEN_OVER)


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
def test_an_error_of_the_database_itself_is_a_line_without_a_traceback(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> None:
        raise kind("the disk is full")

    monkeypatch.setattr(sweeps, "sweep", gone)
    done = tasks.sweep.apply()
    assert done.state == "FAILURE"
    assert isinstance(done.result, tasks.sweep.throws)
    assert "sweep failed; the next beat tries again: the disk is full" in caplog.messages
