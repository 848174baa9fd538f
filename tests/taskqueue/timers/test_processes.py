"""Real processes handle timers: killed, suspended, stopped, and without their database."""

import json
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

from resourcepool.models import Timer, TimerNode
from resourcepool.taskqueue import timers
from tests.spawned import Spawner
from tests.taskqueue.timers.runners import due, over, states, timer

# A file of tzdata's for a zone that is always UTC.
ZONE = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"


def node(*words: str) -> None:
    """Handle the topic "t" by saying so, and "slow" by taking its time; until SIGTERM."""
    from django.core.management import call_command

    @timers.on("t")
    def note(one: Any) -> None:
        print("handled", one.name, one.attempt, one.previous_end or "first", flush=True)

    @timers.on("slow")
    def slow(one: Any) -> None:
        print("began", one.name, one.attempt, one.previous_end or "first", flush=True)
        while one.attempt == 1 and not one.is_stopping:
            time.sleep(0.01)
        if one.is_stopping and one.payload.get("gives_back"):
            raise timers_given_back()

    call_command("resourcepool_timers", *words, stdout=sys.stdout)


def timers_given_back() -> Exception:
    from resourcepool.taskqueue import GivenBack

    return GivenBack()


def test_a_timer_of_a_time_zone_that_a_node_lacks_is_left_to_one_that_has_it(
    spawn: Spawner, tmp_path: Path
) -> None:
    (tmp_path / "Mars").mkdir()
    (tmp_path / "Mars" / "Olympus").write_bytes(ZONE)
    names = [f"mars-{n}" for n in range(9)]
    for name in names:
        due(name, every=60)
    Timer.objects.update(schedule=json.dumps({"cron": "0 0 1 1 *", "tz": "Mars/Olympus"}), catch_up="once")
    due("plain", ago=0.5)
    before = list(Timer.objects.filter(name__in=names).order_by("pk").values())
    lacks = spawn(node, "--threads", "1")
    lacks.line("handled plain 1")
    assert list(Timer.objects.filter(name__in=names).order_by("pk").values()) == before
    assert "No time zone found with key Mars/Olympus" in lacks.output
    has = spawn(node, "--threads", "1", PYTHONTZPATH=str(tmp_path))
    for _ in names:
        has.line("handled mars")
    lacks.send(signal.SIGTERM)
    assert lacks.wait() == 0


def test_a_node_that_is_told_to_stop_lets_its_handler_finish_and_begins_nothing(spawn: Spawner) -> None:
    due("a", topic="slow")
    first = spawn(node, "--threads", "1")
    first.line("began a")
    first.send(signal.SIGTERM)
    first.line("stopped")
    assert first.wait() == 0
    assert states() == {"a": "done"}
    assert not TimerNode.objects.exists()


def test_what_a_node_gives_back_when_it_is_to_stop_goes_to_the_next_one(spawn: Spawner) -> None:
    due("a", topic="slow", payload={"gives_back": True})
    first = spawn(node)
    first.line("began a 1 first")
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    second = spawn(node)
    second.line("began a 2 released")
    over(1)


def test_a_handler_that_does_not_end_in_time_is_cut_off_and_its_timer_given_back(spawn: Spawner) -> None:
    due("a", topic="stuck")
    first = spawn(stuck_node)
    first.line("began a")
    first.send(signal.SIGTERM)
    assert first.wait() == 75
    assert (timer("a").state, timer("a").previous_end, timer("a").crashes) == ("pending", "released", 0)


def stuck_node() -> None:
    from django.core.management import call_command

    @timers.on("stuck")
    def stuck(one: Any) -> None:
        print("began", one.name, flush=True)
        time.sleep(600)

    call_command("resourcepool_timers", "--grace", "0.2", stdout=sys.stdout)
