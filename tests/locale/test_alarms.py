"""Alarms, reasons, and what programs are answered, in Chinese."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone, translation

from resourcepool.db.dialect import DbLater
from resourcepool.models import Bucket, DispenserTask, Task, Topic
from resourcepool.status.queues.problems import Flapping
from resourcepool.status.queues.system import queue_alarms
from resourcepool.status.work.dispensers import dispenser_alarms, dispensers
from resourcepool.status.work.streams import stream_alarms, streams
from resourcepool.status.work.timers import timer_alarms, topics
from tests.locale.reading import in_english
from tests.locale.scenes import SCENES
from tests.locale.test_commands import CHINESE, chinese
from tests.management.command_runner import run
from tests.status.queues import test_alarms as alarming

__all__ = ["chinese"]

ALARMS = [
    ({"servers": 1, "idle": 45.0}, "超过 10 个心跳周期没有队列"),
    ({"servers": 2, "queues": 1}, "2 台服务器只有 1 个队列"),
    ({"servers": 1, "asked_for": 4, "longest_asked": 95.0}, "应移交 4 个队列"),
    ({"servers": 0, "unowned": 64, "unowned_for": 30.0}, "64 个队列无归属"),
    ({"servers": 1, "unowned": 1, "unowned_for": 30.0}, "虽然有服务器在运行"),
    ({"servers": 1, "flapping": Flapping(1, "17", 9)}, "更换服务器超过 3 次"),
]


@pytest.fixture
def rows(committed: None, request: pytest.FixtureRequest) -> Iterator[set[str]]:
    """The rows of the system of this name; the names in them."""
    scene = SCENES[request.param]
    scene.make()
    yield scene.names
    for model in scene.models:
        model._default_manager.all().delete()


@pytest.mark.parametrize(("how", "expected"), ALARMS)
def test_an_alarm_of_queues_is_in_chinese(how: dict[str, Any], expected: str) -> None:
    of_servers = {key: how[key] for key in ("idle", "asked_for", "longest_asked") if key in how}
    of_types = {key: how[key] for key in how if key not in {"servers", *of_servers}}
    servers = [alarming.server(number, **of_servers) for number in range(how["servers"])]
    with translation.override("zh-hans"):
        (alarm,) = queue_alarms([alarming.stands(*servers, **of_types)])
        assert expected in alarm.text
        assert not in_english(str(alarm))
    assert alarm.pool == "queues: orders"


@pytest.mark.parametrize("rows", ["streams"], indirect=True)
def test_alarms_of_streams_are_in_chinese(rows: set[str]) -> None:
    with translation.override("zh-hans"):
        nobody, dead, blocked = stream_alarms(streams(), 600)
        assert str(nobody).startswith("任务流：idle: 没有消费者")
        assert str(blocked).startswith("任务流：oracle: 被任务 0 阻塞：消费者的进程中没有")
        Task.objects.update(submitted_at=timezone.now() - datetime.timedelta(days=3), state="ready")
        _nobody, late = stream_alarms(streams(), 600)
        assert not in_english(f"{nobody} {dead} {blocked} {late}") - rows


@pytest.mark.parametrize("rows", ["topics"], indirect=True)
def test_alarms_of_timers_are_in_chinese(rows: set[str]) -> None:
    with translation.override("zh-hans"):
        dead, nobody = timer_alarms(topics(), 60)
        assert str(nobody).startswith("定时器：orders: 没有存活的节点处理它")
        Topic.objects.update(on_canary=True, requires={})
        _dead, late = timer_alarms(topics(), 60)
        assert not in_english(f"{dead} {nobody} {late}") - rows


@pytest.mark.parametrize("rows", ["dispensers"], indirect=True)
def test_why_nothing_is_handed_out_and_alarms_of_dispensers_are_in_chinese(rows: set[str]) -> None:
    with translation.override("zh-hans"):
        DispenserTask.objects.filter(key="1").update(added_at=DbLater(-7_200))
        DispenserTask.objects.filter(state="assigned").update(assigned_at=DbLater(-7_200))
        DispenserTask.objects.filter(state="done").update(finished_at=DbLater(-7_200))
        found = [str(alarm) for alarm in dispenser_alarms(dispensers(), 600)]
        assert len(found) == 2
        assert all(one.startswith("任务分发器：reviews: ") for one in found)
        reasons = [one.explanation for one in dispensers()]
        for gone in (
            Bucket.objects.filter(name="alice"),
            DispenserTask.objects.filter(state="ready"),
            Bucket.objects,
        ):
            gone.all().delete()
            reasons += [one.explanation for one in dispensers()]
        assert len({*reasons}) == 5  # one of them is ""
        assert not in_english(" ".join([*found, *reasons])) - rows


@pytest.mark.parametrize("rows", ["streams"], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        *(("oracle", "note", "--key", "new"), ("oracle", "note", "--key", "0"), ("nix", "note")),
        *(("oracle", "note", "[1]"), ("oracle", "note", "--task-time", "nix")),
        *(("oracle", "note", "--key", "new "), ("oracle", "note", "--task-time", "9999-01-01T00:00:00+00:00")),
        ("oracle", "note", f'{{"n": "{70_000 * "9"}"}}'),
    ],
)
def test_submitting_is_answered_in_chinese(rows: set[str], chinese: None, words: tuple[str, ...]) -> None:
    ran = run("submit", *words)
    assert CHINESE.search(ran.all)
    typed = {"nix", "new", "stream", "params", "bytes", "datetime", "timezone", "utc", "JSON"}
    assert not in_english(ran.all) - rows - typed


def test_a_consumer_of_an_unknown_stream_is_refused_in_chinese(committed: None, chinese: None) -> None:
    assert "一个已有的任务流" in run("consume", "nix").err
