"""Timers, topics, timer nodes and their alarms in Chinese, with no English text left."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation

from resourcepool.events import sentence_for
from resourcepool.models import Timer, TimerNode, Topic
from resourcepool.status.work.timers import timer_alarms, topics
from tests.admin.conftest import sign_in
from tests.app.rows import granted
from tests.locale.reading import helps_without_chinese, panel, read_in_both
from tests.locale.test_commands import CHINESE, chinese
from tests.locale.test_pages import CHINESE as ASKED
from tests.locale.test_queues import in_english
from tests.management.command_runner import run

__all__ = ["chinese"]

TOPICS, TIMERS, NODES = (f"/admin/resourcepool/{kind}/" for kind in ("topic", "timer", "timernode"))
NAMES = {
    "ttl",
    "Ttl",
    "once",
    "orders",
    "idle",
    "web",
    "superuser",
    "zone",
    "eu",
    "canary",
    "JSON",
    "manage",
    "py",
}


def english(text: str) -> set[str]:
    """Return the words of a text that are neither Chinese nor names."""
    return in_english(text) - NAMES


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def orders(committed: None) -> Iterator[Topic]:
    """One of its timers is late, others wait or have failed; the only node may not handle them."""
    made: Topic = Topic.objects.create(name="orders", requires={"zone": "eu"})
    Topic.objects.create(name="idle")
    now = timezone.now()
    for name, hours, columns in (
        ("0", -3, {}),
        ("1", 3, {}),
        ("2", -3, {"state": "dead", "finished_at": now, "outcome": sentence_for("process_crashed", count=3)}),
        ("3", 3, {"state": "cancelled", "finished_at": now, "outcome": sentence_for("cancelled", name="web")}),
    ):
        moment = now + datetime.timedelta(hours=hours)
        fields: dict[str, Any] = {"due_at": moment, "busy_before": moment, **columns}
        Timer.objects.create(topic=made, name=name, **fields)
    granted(TimerNode.objects.create(name="web", labels={"canary": "eu"}, topics=["orders"]), "web")
    yield made
    for model in (Timer, Topic, TimerNode):
        model.objects.all().delete()


@pytest.mark.parametrize(
    "url",
    [
        *(TOPICS, f"{TOPICS}orders/change/", f"{TOPICS}idle/change/", f"{TOPICS}orders/operate/pause/"),
        *(TIMERS, f"{TIMERS}?status=late", f"{TIMERS}{{timer}}/change/"),
        *(f"{TIMERS}{{timer}}/operate/{act}/" for act in ("fire", "cancel", "retry", "discard")),
        *(NODES, f"{NODES}web/change/"),
    ],
)
def test_a_page_is_in_chinese(client: Client, orders: Topic, url: str) -> None:
    there = url.format(timer=Timer.objects.get(name="0").pk)
    read_in_both(client, there, english)


def test_the_dashboard_is_in_chinese(client: Client, orders: Topic) -> None:
    shown = panel(client, "rp-timers")
    assert "web: 是金丝雀节点" in shown
    assert not english(shown)


def test_what_came_of_it_is_said_in_chinese(client: Client, orders: Topic) -> None:
    for url, expected in (
        (f"{TIMERS}{Timer.objects.get(name='1').pk}/operate/fire/", "现已到期：定时器 orders/1。"),
        (f"{TIMERS}{Timer.objects.get(name='0').pk}/operate/cancel/", "已取消：定时器 orders/0。"),
        (f"{TOPICS}orders/operate/pause/", "已暂停：定时器主题 orders。"),
    ):
        answer = client.post(url, {"confirmed": "yes"}, follow=True, **ASKED)
        assert expected in answer.content.decode()


def test_alarms_are_in_chinese(orders: Topic) -> None:
    with translation.override("zh-hans"):
        dead, nobody = timer_alarms(topics(), 60)
        assert str(nobody).startswith("定时器：orders: 没有存活的节点处理它")
        Topic.objects.update(on_canary=True, requires={})
        _dead, late = timer_alarms(topics(), 60)
        assert not english(f"{dead} {nobody} {late}")


@pytest.mark.parametrize(
    "words",
    [
        *(("timers", "orders"), ("timers", "nix"), ("timers", "orders", "--state", "dead")),
        *((), ("show", "orders"), ("show", "nix"), ("pause", "nix"), ("pause", "orders"), ("resume", "orders")),
        *(("fire", "orders", "nix"), ("fire", "orders", "0", "1"), ("cancel", "orders", "0", "2")),
        *(("retry", "orders"), ("retry", "orders", "2"), ("retry", "orders", "0", "--state", "dead")),
        *(("fire", "orders", "--state", "pending"), ("retry", "idle", "--state", "dead")),
        *(("discard", "orders", "0", "--reason", "卡住了"), ("--watch", "9", "pause", "orders")),
    ],
)
def test_the_command_of_topics_speaks_chinese(orders: Topic, chinese: None, words: tuple[str, ...]) -> None:
    ran = run("topics", *words)
    assert CHINESE.search(ran.all)
    assert not english(ran.all) - {"nix", "topic", "name", "yes", "show", "timers"}


def test_the_help_of_each_word_of_topics_is_in_chinese(chinese: None) -> None:
    assert helps_without_chinese("resourcepool_topics") == []


def test_programs_are_answered_in_english(orders: Topic, chinese: None) -> None:
    ran = run("topics", "show", "--json")
    assert ran.code == 0
    assert not CHINESE.search(ran.all)
