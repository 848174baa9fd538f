"""The sweep from a shell: once, or as a service that nothing but its operator ends."""

from typing import Any

import pytest
from django.db import OperationalError

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.management.commands import resourcepool_sweep as command
from tests.management.command_runner import Ran, run


@pytest.mark.django_db(transaction=True)
def test_it_says_what_each_job_did() -> None:
    said = run("sweep")
    assert [line.partition(":")[0] for line in said.out.splitlines()] == [
        "sweep",
        "statistics",
        "prune history",
    ]
    assert said.err == ""


@pytest.mark.parametrize("every", [0, 0.5, -1, float("nan"), 1e9])
def test_a_pause_that_makes_no_sense_is_refused(every: float) -> None:
    said = run("sweep", f"--every={every}")
    assert said.out == ""
    assert f"--every={float(every)!r} is not allowed" in said.err


def test_no_failure_of_the_database_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[Any] = [
        DatabaseUnavailable("gone away"),
        OperationalError("access denied"),
        None,
        KeyboardInterrupt(),
    ]

    def job() -> str:
        end = ends.pop(0)
        if end is not None:
            raise end
        return "done"

    monkeypatch.setattr(command, "JOBS", (("sweep", job),))
    monkeypatch.setattr(command, "interruptible_sleep", no_pause)
    said = run("sweep", "--every", 60)
    assert said.out == "sweep: done\nstopped\n"
    assert said.err.splitlines() == ["gone away", "access denied"], "Ctrl-C is the way to end it"


def test_ctrl_c_interrupts_a_single_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def job() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "JOBS", (("sweep", job),))
    assert run("sweep") == Ran("", "interrupted; the next sweep does the rest\n", 130)


def no_pause(seconds: float) -> None:
    assert seconds == 60
