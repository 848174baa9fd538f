"""Invalid settings written past validation are reported in a sentence, and cause no crash loop."""

from typing import Any

import pytest

from resourcepool.models import Stream
from resourcepool.status.work.streams import streams
from resourcepool.taskqueue import handler, submit
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, finished, stream
from tests.taskqueue.test_stream_worker import leads, run_once

WRONG: list[dict[str, Any]] = [
    {"lanes": 0},
    {"lanes": 1_000},
    {"on_failure": "x"},
    {"retry_delay": -1.0},
    {"term_ttl": 0.0},
    {"lock_delay": -1.0},
    {"done_kept": -1.0},
    {"max_crashes": 0},
    {"retries": 10_000},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_wrong_is_named(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    assert Stream(**wrong).wrong_settings().startswith(f"{name}={value!r}: ")


def test_a_consumer_says_once_what_is_wrong_and_goes_on_when_it_is_mended(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.consumer.SETTINGS_CHECK_EVERY", 0.1)
    stream(lanes=0)
    handler("note")(lambda _: None)
    submit("oracle", "note", key="a")
    said = "lanes=0: "
    assert said in streams("oracle")[0].explanation
    with consuming():
        eventually(lambda: said in caplog.text, WITHIN)
        Stream.objects.update(lanes=1)
        finished(1)
    assert caplog.text.count(said) == 1
    assert streams("oracle")[0].explanation == ""


def test_a_leader_goes_on_with_the_settings_that_were_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.consumer.SETTINGS_MAX_AGE", 0)
    worker = leads(lanes=2)
    run_once(worker)
    Stream.objects.update(on_failure="x", lanes=0)
    run_once(worker)
    assert worker._settings is not None
    assert (worker._settings.lanes, worker._settings.on_failure) == (2, "block")
    Stream.objects.update(on_failure="skip", lanes=3)
    run_once(worker)
    assert (worker._settings.lanes, worker._settings.on_failure) == (3, "skip")
