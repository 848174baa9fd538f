"""The Celery tasks while the database is down: one line each in the log, no traceback, no retries."""

import pickle
import re

import pytest
from django.db import InterfaceError, OperationalError

from resourcepool import tasks
from resourcepool.exceptions import BadOption
from resourcepool.models import Job
from resourcepool.sweeps import sweep as sweeps
from tests.app.rows import steal
from tests.canary.planted import DATABASE_URLS
from tests.spawned import Spawner

TASKS = ("sweep", "prune_history", "refresh_statistics", "check_health")


def do_all() -> None:
    """Do each task once, as a worker does, and print how it ended."""
    for name in TASKS:
        arguments = ("resourcepool.Proxy",) if name == "check_health" else ()
        done = getattr(tasks, name).apply(args=arguments)
        print(name, "is", done.state, flush=True)


def test_each_fails_with_one_warning(spawn: Spawner) -> None:
    said = spawn(do_all, DATABASE_URL=DATABASE_URLS["mysql"]).succeed(timeout=60)
    assert "Traceback" not in said, said
    for name in TASKS:
        assert f"{name} is FAILURE" in said
        why = (
            "failed; the next beat tries again" if name != "check_health" else "skipped: fix the settings first"
        )
        assert len(re.findall(f"WARNING .*{name} {why}: ", said)) == 1, said


def test_celery_never_starts_one_again_by_itself() -> None:
    for name in TASKS:
        task = getattr(tasks, name)
        assert not getattr(task, "autoretry_for", ())
        assert not task.acks_late


def test_a_wrong_setting_keeps_its_kind_on_its_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(BadOption("ttl", -1, "more than 0")))
    assert (type(error), str(error)) == (BadOption, "ttl=-1 is not allowed: it must be more than 0")


# The end of a Celery task after an error: its result and its line in Celery's log.


def test_one_that_stood_still_for_too_long_is_being_done_elsewhere_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stands_still() -> int:
        steal(Job.objects.get(), holder="the next one")
        return 0

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
