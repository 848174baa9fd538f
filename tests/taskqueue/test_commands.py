"""The commands of streams, and consumers as processes that come, go and die."""

import json
import signal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from resourcepool.models import Stream, Task
from resourcepool.taskqueue import Consumer, handler, submit
from tests.eventually import eventually
from tests.management.command_runner import manage
from tests.spawned import Spawner
from tests.taskqueue.consumers import WITHIN, finished, states, stream


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue().strip()


def test_submitting_again_under_the_same_key_changes_nothing_and_says_so() -> None:
    stream()
    words = ("resourcepool_submit", "oracle", "note", '{"n": 1}', "--key", "req")
    assert said(*words) == "submitted req"
    assert said(*words) == "req was already submitted; nothing was changed"
    assert states() == {"req": "ready"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("unknown", "note"), "stream='unknown'"),
        (("oracle", "note", "{n: 1}"), "params="),
        (("oracle", "note", "[" * 100_000), "params="),
        (("oracle", "note", "--task-time", "tomorrow"), "--task-time='tomorrow'"),
        (
            ("oracle", "note", "--task-time", "2026-12-01T02:00"),
            r"--task-time='2026-12-01T02:00' .*02:00:00\+00:00",
        ),
    ],
)
def test_what_cannot_be_submitted_is_refused_with_a_sentence(words: tuple[str, ...], named: str) -> None:
    stream()
    with pytest.raises(CommandError, match=named):
        said("resourcepool_submit", *words)
    assert not Task.objects.exists()


@pytest.mark.parametrize("labels", [["eu"], ["zone=eu", "zone=us"], ["zone=eu", "zone=eu"], ["=eu"]])
def test_labels_of_a_node_of_timers_are_keys_with_values_each_once(labels: list[str]) -> None:
    with pytest.raises(CommandError, match=r"label.* is not allowed"):
        said("resourcepool_timers", *(f"--label={label}" for label in labels))


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("streams", "add"), ("--term-ttl SECONDS", "default: 7 days (604,800 s)", "block: later tasks wait")),
        (("submit",), ("a time such as 2026-12-01T02:00:00+00:00 (default: now)",)),
    ],
)
def test_help_tells_units_defaults_and_choices(
    words: tuple[str, ...], parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        said(f"resourcepool_{words[0]}", *words[1:], "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert [part for part in parts if part not in shown] == []


def test_keys_that_do_not_exist_are_named_and_the_others_are_done() -> None:
    stream()
    submit("oracle", "note", key="a")
    with pytest.raises(CommandError, match="Not in oracle: b, c"):
        said("resourcepool_streams", "discard", "oracle", "c", "a", "b", "--reason", "typo")
    assert states() == {"a": "discarded"}
    with pytest.raises(CommandError, match=r"1 skipped: .* Not in oracle: b"):
        said("resourcepool_streams", "discard", "oracle", "a", "b", "--reason", "typo")


def test_a_stream_is_added_shown_paused_and_resumed() -> None:
    assert "add one" in said("resourcepool_streams")
    assert (
        said("resourcepool_streams", "add", "oracle", "--retries", "3", "--on-failure", "skip")
        == "added oracle"
    )
    with pytest.raises(CommandError, match="stream oracle already exists; nothing was changed"):
        said("resourcepool_streams", "add", "oracle")
    row = Stream.objects.get()
    assert (row.retries, row.on_failure, row.lanes) == (3, "skip", 1)
    submit("oracle", "note")
    shown = said("resourcepool_streams")
    assert "oracle: no consumer is leading" in shown
    assert said("resourcepool_streams", "pause", "oracle") == "Stream oracle was paused."
    with pytest.raises(CommandError, match="1 skipped: already paused"):
        said("resourcepool_streams", "pause", "oracle")
    assert said("resourcepool_streams", "resume", "oracle") == "Stream oracle was resumed."
    (one,) = json.loads(said("resourcepool_streams", "show", "oracle", "--json"))["streams"]
    assert (one["name"], one["depth"], one["explanation"][:11]) == ("oracle", 1, "no consumer")


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


@pytest.mark.parametrize("words", [("resourcepool_consume", "oracle"), ("resourcepool_timers",)])
def test_ctrl_c_is_answered_at_once_and_ends_with_0(spawn: Spawner, words: tuple[str, ...]) -> None:
    stream()
    service = spawn(manage, *words)
    service.line("press Ctrl-C or send SIGTERM to stop")
    service.send(signal.SIGINT)
    service.line("Stopping once running handlers finish. Press Ctrl-C again to stop now.")
    service.line("stopped")
    assert service.wait(WITHIN) == 0
