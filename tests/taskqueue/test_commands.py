"""The commands of streams, and consumers as processes that come, go and die."""

import signal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import Consumer, handler, submit, submit_many
from resourcepool.taskqueue.submitting import NewTask
from tests.eventually import eventually
from tests.spawned import Spawner
from tests.taskqueue.consuming import WITHIN, finished, states, stream

SOON = 60


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().strip()


def test_submitting_again_under_the_same_key_changes_nothing_and_says_so() -> None:
    stream()
    words = ("resourcepool_submit", "oracle", "note", '{"n": 1}', "--key", "req")
    assert said(*words) == "submitted req"
    assert said(*words) == "req was submitted before; nothing was changed"
    assert states() == {"req": "ready"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("unknown", "note"), "stream='unknown'"),
        (("oracle", "note", "{n: 1}"), "params="),
        (("oracle", "note", "[1]"), "params="),
        (("oracle", "note", "--task-time", "tomorrow"), "--task-time='tomorrow'"),
    ],
)
def test_what_cannot_be_submitted_is_refused_with_a_sentence(words: tuple[str, ...], named: str) -> None:
    stream()
    with pytest.raises(CommandError, match=named):
        said("resourcepool_submit", *words)
    assert not Task.objects.exists()


def test_a_consumer_of_an_unknown_stream_says_so() -> None:
    with pytest.raises(CommandError, match="stream='unknown' is not allowed"):
        said("resourcepool_consume", "unknown")


def consume(file: str, slow: str = "") -> None:
    """In a child: note each task; the slow one never ends."""

    @handler("note")
    def note(one: Any) -> None:
        with Path(file).open("a") as log:
            log.write(f"{one.key} {one.attempt}\n")
        if one.key == slow:
            eventually(lambda: False, within=600)

    consumer = Consumer("oracle")
    signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
    consumer.run()


def test_a_consumer_that_is_killed_is_followed_and_no_task_is_lost_or_out_of_order(
    spawn: Spawner, tmp_path: Path
) -> None:
    stream(term_ttl=1)
    log = tmp_path / "log"
    submit_many("oracle", [NewTask("note", key=str(number)) for number in range(20)])
    first = spawn(consume, str(log), "10")
    eventually(lambda: states()["10"] == "running", SOON, states)
    second = spawn(consume, str(log))
    first.kill()
    finished(20)
    second.send(signal.SIGTERM)
    second.wait(WITHIN)
    lines = log.read_text().split("\n")[:-1]
    assert lines == [f"{n} 1" for n in range(11)] + ["10 2"] + [f"{n} 1" for n in range(11, 20)]
    assert Task.objects.get(key="10").deaths == 1


def test_sigterm_ends_a_consumer_after_the_task_in_hand_and_the_next_one_leads_at_once(
    spawn: Spawner, tmp_path: Path
) -> None:
    stream(term_ttl=3_600)
    submit("oracle", "note", key="a")
    first = spawn(consume, str(tmp_path / "log"))
    finished(1)
    first.send(signal.SIGTERM)
    assert first.wait(WITHIN) == 0
    assert Stream.objects.get().holder == ""
