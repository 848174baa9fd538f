"""Streams, tasks, elections and their alarms in Chinese, with no English text left."""

import datetime
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone, translation

from resourcepool.elections.models import Election as ElectionRow
from resourcepool.events import sentence_for
from resourcepool.models import Stream, Task
from resourcepool.status.work.streams import stream_alarms, streams
from resourcepool.taskqueue import NewTask, submit_many
from tests.admin.conftest import sign_in
from tests.app.rows import granted
from tests.locale.reading import helps_without_chinese, panel, read_in_both
from tests.locale.test_commands import CHINESE, chinese
from tests.locale.test_pages import CHINESE as ASKED
from tests.locale.test_queues import in_english
from tests.management.command_runner import run

__all__ = ["chinese"]

STREAMS, TASKS, ELECTIONS = (f"/admin/resourcepool/{kind}/" for kind in ("stream", "task", "election"))
NAMES = {"oracle", "idle", "reports", "note", "web", "superuser", "NAME", "JSON", "ttl"}


def english(text: str) -> set[str]:
    """Return the words of a text that are neither Chinese nor names."""
    return in_english(text) - NAMES


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def oracle(committed: None) -> Iterator[Stream]:
    """Its first task blocks it, others have finished; idle has no consumer."""
    made: Stream = Stream.objects.create(name="oracle")
    granted(made, "web")
    submit_many("oracle", [NewTask("note", key=str(number)) for number in range(4)])
    Task.objects.filter(key="0").update(state="blocked", outcome=sentence_for("no_handler", name="note"))
    Task.objects.filter(key="1").update(state="dead", finished_at=timezone.now())
    Task.objects.filter(key="2").update(state="done", finished_at=timezone.now())
    Stream.objects.create(name="idle")
    submit_many("idle", [NewTask("note", key="0")])
    granted(ElectionRow.objects.create(name="reports"), "web")
    yield made
    for model in (Task, Stream, ElectionRow):
        model.objects.all().delete()


@pytest.mark.parametrize(
    "url",
    [
        *(STREAMS, f"{STREAMS}add/", f"{STREAMS}oracle/change/", f"{STREAMS}idle/change/"),
        *(f"{STREAMS}{name}/operate/{order}/" for name, order in (("oracle", "pause"), ("idle", "pause"))),
        *(TASKS, f"{TASKS}?status=unfinished", f"{TASKS}{{task}}/change/"),
        *(f"{TASKS}{{task}}/operate/{order}/" for order in ("retry", "discard")),
        *(ELECTIONS, f"{ELECTIONS}reports/change/"),
    ],
)
def test_a_page_is_in_chinese(client: Client, oracle: Stream, url: str) -> None:
    there = url.format(task=Task.objects.get(stream=oracle, key="0").pk)
    read_in_both(client, there, english)


def test_the_dashboard_is_in_chinese(client: Client, oracle: Stream) -> None:
    shown = panel(client, "rp-streams")
    assert "消费者的进程中没有类型“note”的处理函数" in shown
    assert not english(shown)


def test_what_came_of_it_is_said_in_chinese(client: Client, oracle: Stream) -> None:
    task = Task.objects.get(stream=oracle, key="0").pk
    for url, expected in (
        (f"{TASKS}{task}/operate/retry/", "已重新就绪：任务 oracle/0。"),
        (f"{STREAMS}oracle/operate/pause/", "已暂停：任务流 oracle。"),
    ):
        answer = client.post(url, {"confirmed": "yes"}, follow=True, **ASKED)
        assert expected in answer.content.decode()


def test_alarms_are_in_chinese(oracle: Stream) -> None:
    with translation.override("zh-hans"):
        nobody, dead, blocked = stream_alarms(streams(), 600)
        assert str(nobody).startswith("任务流：idle: 没有消费者")
        assert str(blocked).startswith("任务流：oracle: 被任务 0 阻塞：消费者的进程中没有")
        Task.objects.update(submitted_at=timezone.now() - datetime.timedelta(days=3), state="ready")
        _nobody, late = stream_alarms(streams(), 600)
        assert not english(f"{nobody} {dead} {blocked} {late}")


@pytest.mark.parametrize(
    "words",
    [
        *(("tasks", "oracle"), ("tasks", "nix"), ("tasks", "oracle", "--limit", "1")),
        *((), ("show", "oracle"), ("show", "nix"), ("add", "new"), ("add", "new", "--lanes", "0")),
        *(("pause", "nix"), ("retry", "oracle", "nix"), ("--watch", "9", "pause", "oracle")),
        *(("pause", "oracle"), ("resume", "oracle"), ("retry", "oracle", "0"), ("retry", "oracle", "2")),
        *(("retry", "oracle"), ("retry", "oracle", "0", "--state", "dead")),
        *(("retry", "oracle", "--state", "dead"), ("retry", "oracle", "--state", "skipped")),
        ("discard", "oracle", "0", "--reason", "卡住了"),
    ],
)
def test_the_command_of_streams_speaks_chinese(oracle: Stream, chinese: None, words: tuple[str, ...]) -> None:
    ran = run("streams", *words)
    assert CHINESE.search(ran.all)
    assert not english(ran.all) - {
        "nix",
        "new",
        "lanes",
        "stream",
        "key",
        "dead",
        "yes",
        "show",
        "tasks",
        "after",
    }


@pytest.mark.parametrize(
    "words",
    [
        *(("oracle", "note", "--key", "new"), ("oracle", "note", "--key", "0"), ("nix", "note")),
        *(("oracle", "note", "[1]"), ("oracle", "note", "--task-time", "nix")),
        *(("oracle", "note", "--key", "new "), ("oracle", "note", "--task-time", "9999-01-01T00:00:00+00:00")),
        ("oracle", "note", f'{{"n": "{70_000 * "9"}"}}'),
    ],
)
def test_submitting_is_answered_in_chinese(oracle: Stream, chinese: None, words: tuple[str, ...]) -> None:
    ran = run("submit", *words)
    assert CHINESE.search(ran.all)
    assert not english(ran.all) - {"nix", "new", "stream", "params", "bytes", "datetime", "timezone", "utc"}


def test_a_consumer_of_an_unknown_stream_is_refused_in_chinese(committed: None, chinese: None) -> None:
    assert "一个已有的任务流" in run("consume", "nix").err


def test_the_help_of_each_word_of_streams_is_in_chinese(chinese: None) -> None:
    assert helps_without_chinese("resourcepool_streams") == []


def test_programs_are_answered_in_english(oracle: Stream, chinese: None) -> None:
    ran = run("streams", "show", "--json")
    assert ran.code == 0
    assert not CHINESE.search(ran.all)
