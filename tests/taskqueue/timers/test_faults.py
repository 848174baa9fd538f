"""What may go wrong around timers: paused processes, wrong clocks, many topics, and handlers that misbehave."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Timer, Topic
from resourcepool.taskqueue import timers
from tests.eventually import eventually
from tests.spawned import Spawner
from tests.taskqueue.timers.runners import WITHIN, due, handling, over, states, timer, topic


def paused_node(number: str, folder: str) -> None:
    """Handle the topic "t" until a file of this number exists; print whether a write counts then."""
    from django.core.management import call_command

    @timers.on("t")
    def slow(one: Any) -> None:
        print("began", one.attempt, one.previous_end or "first", flush=True)
        while not (Path(folder) / number).exists():
            time.sleep(0.01)
        try:
            with transaction.atomic(), one.guard():
                Topic.objects.create(name=f"written by {number}")
        except LeaseLost:
            print("refused", one.lost.is_set(), flush=True)
            raise
        print("written", flush=True)

    call_command("resourcepool_timers", stdout=sys.stdout)


def test_a_node_that_stood_still_writes_nothing_while_the_second_one_handles_its_timer(
    spawn: Spawner, tmp_path: Path
) -> None:
    topic(ttl=1)
    due()
    first = spawn(paused_node, "1", str(tmp_path))
    first.line("began 1 first")
    first.send(signal.SIGSTOP)
    second = spawn(paused_node, "2", str(tmp_path))
    second.line("began 2 expired")
    (tmp_path / "1").touch()
    first.send(signal.SIGCONT)
    first.line("refused True")
    assert (timer().state, timer().attempts) == ("running", 2)
    (tmp_path / "2").touch()
    second.line("written")
    over(1)
    assert states() == {"a": "done"}
    assert not Topic.objects.filter(name="written by 1").exists()


def wrong_clock(offset: float) -> None:
    """Set a timer and handle it, on a host whose clock is so many seconds off, and off by more at each look."""
    from django.core.management import call_command

    real, looks = time.time, iter(range(10**9))
    time.time = lambda: real() + offset + next(looks) * 10

    @timers.on("t")
    def note(one: Any) -> None:
        print(json.dumps(["handled", one.name, one.late_by.total_seconds()]), flush=True)

    timers.schedule("soon", topic="t", after=0.5)
    timers.schedule("in an hour", topic="t", after=3_600)
    timers.schedule("each", topic="t", every=3_600)
    call_command("resourcepool_timers", stdout=sys.stdout)


@pytest.mark.parametrize("offset", [-7_200.0, 7_200.0])
def test_the_clock_of_a_host_does_not_matter(offset: float, spawn: Spawner) -> None:
    node = spawn(wrong_clock, offset)
    _, name, late_by = json.loads(node.line("handled"))
    assert (name, 0 <= late_by < 60) == ("soon", True)
    over(1)
    due("marker")
    assert json.loads(node.line("handled"))[1] == "marker"
    over(2)
    assert states() == {"soon": "done", "marker": "done", "in an hour": "pending", "each": "pending"}
    assert (timer("each").due_at - timer("in an hour").due_at).total_seconds() < 60


def test_a_node_may_have_handlers_for_very_many_topics() -> None:
    names = [f"t{number}" for number in range(1_000)]
    seen: list[str] = []
    Topic.objects.bulk_create([Topic(name=name) for name in names], batch_size=500)
    for name in names:
        timers.on(name)(lambda one: seen.append(one.topic))
    due("first", topic=names[0])
    due("late", topic=names[500], ago=3_600)
    due("last", topic=names[-1])
    with handling():
        over(3)
    assert set(seen) == {names[0], names[500], names[-1]}


def racing(kind: str) -> None:
    """Change each timer once, about when it fires, and print the result."""
    came_of = {}
    for name, due_at in list(Timer.objects.order_by("due_at").values_list("name", "due_at")):
        time.sleep(max(0.0, due_at.timestamp() - time.time()))
        if kind == "cancel":
            came_of[name] = str(timers.cancel(name))
        elif kind == "reschedule":
            came_of[name] = str(timers.reschedule(name, after=3_600))
        else:
            came_of[name] = str(timers.schedule(name, topic="t", after=3_600).is_new)
    print(json.dumps(came_of), flush=True)


def firing() -> None:
    from django.core.management import call_command

    @timers.on("t")
    def note(one: Any) -> None:
        os.write(1, f"fired {one.name}\n".encode())  # in one piece: threads print at the same time

    call_command("resourcepool_timers", "--threads", "8", stdout=sys.stdout)


@pytest.mark.parametrize("kind", ["cancel", "reschedule", "replace"])
def test_of_a_change_and_the_handler_exactly_one_wins(kind: str, spawn: Spawner) -> None:
    nodes = [spawn(firing), spawn(firing)]
    for node in nodes:
        node.line("handling timers")
    for number in range(75):
        timers.schedule(f"n{number}", topic="t", after=1 + number / 50)
    said = json.loads(spawn(racing, kind).succeed().splitlines()[-1])
    won = {"cancel": "cancelled", "reschedule": "rescheduled", "replace": "False"}[kind]

    def settled() -> bool:
        return not (Timer.objects.due().exists() or Timer.objects.filter(state="running").exists())

    eventually(settled, WITHIN, states)
    for node in nodes:
        node.send(signal.SIGTERM)
        assert node.wait() == 0
    fired = [line.split()[1] for node in nodes for line in node.output.splitlines() if line.startswith("fired")]
    assert len(fired) == len(set(fired))
    winners = {name for name, what in said.items() if what == won}
    if kind != "replace":  # which also takes from a handler that has begun
        assert winners.isdisjoint(fired)
        assert winners | set(fired) == set(said)
    expected = {"cancel": "cancelled", "reschedule": "pending", "replace": "pending"}[kind]
    found = states()
    assert {found[name] for name in winners} <= {expected}
