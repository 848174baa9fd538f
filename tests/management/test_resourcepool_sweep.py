"""The sweep from a shell: once, or as a service that nothing but its operator ends."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.management.commands import resourcepool_sweep as command


def sweep(**options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("resourcepool_sweep", stdout=out, stderr=err, **options)
    except CommandError as error:
        err.write(f"{error} ({error.returncode})")
    return out.getvalue(), err.getvalue()


@pytest.mark.django_db(transaction=True)
def test_it_says_what_each_job_did() -> None:
    out, err = sweep()
    assert [line.partition(":")[0] for line in out.splitlines()] == ["sweep", "statistics", "prune history"]
    assert err == ""


@pytest.mark.parametrize("every", [0, 0.5, -1, float("nan"), 1e9])
def test_a_pause_that_makes_no_sense_is_refused(every: float) -> None:
    out, err = sweep(every=every)
    assert out == ""
    assert f"--every={every!r} is not allowed" in err


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
    out, err = sweep(every=60)
    assert out == "sweep: done\nstopped\n"
    assert err.splitlines() == ["gone away", "access denied"], "Ctrl-C is the way to end it"


def test_ctrl_c_interrupts_a_single_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def job() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "JOBS", (("sweep", job),))
    assert sweep() == ("", "interrupted; the next sweep does the rest (130)")


def no_pause(seconds: float) -> None:
    assert seconds == 60
