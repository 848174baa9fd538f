"""Real processes handle timers: killed, suspended, stopped, and without their database."""

import signal
import sys
import time
from typing import Any

from resourcepool.models import TimerNode
from resourcepool.taskqueue import timers
from tests.spawned import Spawner
from tests.taskqueue.timers.runners import due, states


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

    call_command("resourcepool_timers", *words, stdout=sys.stdout)


def test_a_node_that_is_told_to_stop_lets_its_handler_finish_and_begins_nothing(spawn: Spawner) -> None:
    due("a", topic="slow")
    first = spawn(node, "--threads", "1")
    first.line("began a")
    first.send(signal.SIGTERM)
    first.line("stopped")
    assert first.wait() == 0
    assert states() == {"a": "done"}
    assert not TimerNode.objects.exists()
