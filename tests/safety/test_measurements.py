"""Measurements: the arithmetic, and that the measurement of commits leaves nothing behind."""

import signal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.leases import verbs
from resourcepool.models import Ticket
from resourcepool.safety import measurements
from resourcepool.safety.measurements import POOL, ClockReading, distance, summarize
from tests.app.rows import new
from tests.eventually import eventually


def test_the_quickest_reading_determines_the_clock_offset() -> None:
    found = distance(
        [
            ClockReading(100.0, 105.1, 100.2),
            ClockReading(200.0, 205.02, 200.04),
            ClockReading(300.0, 310.0, 301.0),
        ]
    )
    assert found.round_trip == pytest.approx(0.2)
    assert found.offset == pytest.approx(5.0)
    assert found.offset_error == pytest.approx(0.02)


def test_the_clock_error_includes_the_clock_step() -> None:
    assert distance([ClockReading(0.0, 0.1, 0.2)], step=0.5).offset_error == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("seconds", "median", "p99"), [([3.0], 3.0, 3.0), ([2.0, 1.0], 1.5, 2.0), (list(range(1, 201)), 100.5, 198)]
)
def test_commits_are_summed_up(seconds: list[float], median: float, p99: float) -> None:
    found = summarize(seconds)
    assert (found.count, found.median, found.p99) == (len(seconds), median, p99)


def test_server_and_host_share_a_clock_here() -> None:
    found = measurements.measure_distance(connection)
    assert abs(found.offset) <= found.offset_error + 1  # on a machine that is held up
    assert found.round_trip > 0


def test_commits_are_measured_on_a_separate_ticket_that_is_removed_afterwards() -> None:
    seen: list[tuple[str, int]] = []
    renew = verbs.renew

    def watched(*args: Any) -> int:
        seen.extend(Ticket.objects.held().values_list("pool", "fence"))
        return renew(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verbs, "renew", watched)
        assert measurements.commits(connection, count=3).count == 3
    assert seen == [(POOL, 1)] * 3
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_measurement_leaves_no_ticket(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> int:
        assert Ticket.objects.count() == 1
        raise error

    monkeypatch.setattr(verbs, "renew", interrupted)
    with pytest.raises(error):
        measurements.commits(connection)
    assert not Ticket.objects.exists()


def test_removes_the_ticket_of_a_killed_measurement_but_not_of_a_running_one() -> None:
    dead = new(Ticket, pool=POOL, holder="dead", fence=1, busy_before=DbLater(-1))
    alive = new(Ticket, pool=POOL, holder="alive", fence=1, busy_before=DbLater(60))
    waiting = new(Ticket, pool="resourcepool.proxy", holder="waits", fence=1, busy_before=DbLater(-1))
    measurements.commits(connection, count=1)
    left = set(Ticket.objects.values_list("pk", flat=True))
    assert left == {alive.pk, waiting.pk}
    assert dead.pk not in left


def keep_measuring() -> None:
    """In a child: run the doctor endlessly."""
    measure = measurements.commits
    measurements.commits = lambda connection: measure(connection, count=10**9, within=1e9)
    call_command("resourcepool_doctor")


def test_ctrl_c_ends_the_doctor_and_leaves_no_ticket(spawn: Any) -> None:
    child = spawn(keep_measuring)
    eventually(lambda: Ticket.objects.filter(pool=POOL, busy_before__gt=DbNow()).exists())
    child.send(signal.SIGINT)
    assert child.wait() != 0
    assert "interrupted" in child.output
    assert not Ticket.objects.exists()
