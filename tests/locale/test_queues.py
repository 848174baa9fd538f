"""Queues, queue servers and their alarms in Chinese, with no English text left."""

import argparse
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from resourcepool.db.dialect import DbLater
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import administration
from resourcepool.status.queues.alarms import queue_alarms
from resourcepool.status.queues.problems import Flapping
from tests.admin.conftest import sign_in
from tests.admin.queues.scene import LIST, queue_group, server
from tests.locale.test_commands import CHINESE, chinese, parser_of
from tests.locale.test_pages import CHINESE as ASKED
from tests.locale.test_pages import said
from tests.management.command_runner import run
from tests.status.queues import test_alarms as alarming

__all__ = ["chinese"]

QUEUE_GROUPS, SERVERS, QUEUES, MOVES = (LIST.format(kind) for kind in ("queuegroup", "server", "queue", "move"))
NAMES = {"orders", "ghosts", "late", "eu", "zone", "main", "web", "superuser"}
WORDS = {"UTC", "sticky", "round", "robin", "fencing", "Fencing"}


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def orders(committed: None) -> Iterator[QueueGroup]:
    """A drains, B has a queue that A handed over too late, "late" is late; "ghosts" never had a server."""
    made = queue_group("orders", 6)
    rows = Queue.objects.filter(queue_group=made)
    first = server(made, "A")
    rows.filter(queue_id="q0").update(labels={"zone": "eu"})
    server(made, "B", labels={"zone": "eu"})
    server(made, "late", left=20, idle_since=DbLater(-60))
    rows.filter(queue_id="q1").update(requested_at=DbLater(-900), pin="B")
    administration.remove_queues("orders", ["q5"])
    administration.drain("orders", str(first))
    administration.pause("orders")
    administration.create("ghosts", ["1"])
    yield made
    for model in (Move, Queue, Server, QueueGroup):
        model.objects.all().delete()


def in_english(text: str) -> set[str]:
    """Return the words of a text that are neither Chinese nor names, without commands and options."""
    bare = re.sub(
        r"<code>.*?</code>|`[^`]*`|\[\w+\]|<[^>]*>|\{[^}]*\}|q\d+|--[a-z-]+|[a-z_]+=",
        " ",
        text,
        flags=re.DOTALL,
    )
    return set(re.findall(r"[A-Za-z]{2,}", html.unescape(bare))) - NAMES - WORDS


def content(page: str) -> str:
    """Return our part of an admin page, with its tooltips."""
    inner = page[page.index('<div id="content"') :]
    return inner + " ".join(re.findall(r' (?:title|aria-label)="([^"]*)"', inner))


def there(orders: QueueGroup, url: str) -> str:
    """Return a URL with the keys of the rows."""
    row, one = Queue.objects.get(queue_group=orders, queue_id="q1"), Server.objects.get(name="A")
    return url.format(type=orders.pk, queue=row.pk, server=one.pk)


@pytest.mark.parametrize(
    "url",
    [
        *(
            QUEUE_GROUPS,
            f"{QUEUE_GROUPS}add/",
            f"{QUEUE_GROUPS}{{type}}/change/",
            f"{QUEUE_GROUPS}{{type}}/delete/",
        ),
        *(f"{QUEUE_GROUPS}{{type}}/operate/{order}/" for order in ("pause", "resume")),
        *(SERVERS, f"{SERVERS}{{server}}/change/"),
        *(f"{SERVERS}{{server}}/operate/{order}/" for order in ("drain", "undrain")),
        *(QUEUES, f"{QUEUES}add/", f"{QUEUES}{{queue}}/change/", f"{QUEUES}{{queue}}/delete/"),
        *(f"{QUEUES}{{queue}}/operate/{order}/" for order in ("pin", "unpin")),
        MOVES,
    ],
)
def test_a_page_is_in_chinese(client: Client, orders: QueueGroup, url: str) -> None:
    page = content(said(client, there(orders, url), **ASKED))
    assert CHINESE.search(page)
    assert not in_english(page)
    assert not CHINESE.search(said(client, there(orders, url)))


def test_the_dashboard_is_in_chinese(client: Client, orders: QueueGroup) -> None:
    page = said(client, "/admin/resourcepool/dashboard/", **ASKED)
    panel = page[page.index('aria-labelledby="rpq0"') :]
    assert "A #1 未能及时完成该队列上的工作" in re.sub(r"A #\d+", "A #1", panel)
    assert not in_english(panel[panel.index(">") :])
    assert "<strong>队列：orders</strong>" in page


@pytest.mark.parametrize(
    ("url", "entered", "expected"),
    [
        (f"{QUEUE_GROUPS}{{type}}/operate/resume/", {}, "已恢复：队列组 orders。"),
        (f"{SERVERS}{{server}}/operate/undrain/", {}, "1 台已结束排空："),
        (f"{QUEUES}{{queue}}/operate/pin/", {"server": "A"}, "已固定：队列 orders / "),
        (f"{QUEUES}{{queue}}/delete/", {}, "，或待其服务器完成工作后移除。"),
        (f"{QUEUES}add/", {"queue_group": "orders", "queues": "n1\nn2", "labels": "{}"}, "已添加 2 个队列。"),
        (f"{QUEUES}add/", {"queue_group": "orders", "queues": "q1", "labels": "{}"}, "已存在于 orders 中"),
        (
            f"{QUEUES}add/",
            {"queue_group": "orders", "queues": "x", "labels": '{"a": 1}'},
            "每个标签及其值必须是 1 到 50 个",
        ),
    ],
)
def test_what_came_of_it_is_said_in_chinese(
    client: Client, orders: QueueGroup, url: str, entered: dict[str, Any], expected: str
) -> None:
    answer = client.post(there(orders, url), {"confirmed": "yes", **entered}, follow=True, **ASKED)
    assert expected in html.unescape(answer.content.decode())


def test_settings_that_contradict_each_other_are_refused_in_chinese(client: Client, orders: QueueGroup) -> None:
    entered = {"name": "x", "strategy": "sticky", "heartbeat_every": 5, "judge_dead_after": 2}
    answer = client.post(f"{QUEUE_GROUPS}add/", {**entered, "reload_every": 1, "handover_timeout": 9}, **ASKED)
    assert "至少为两个心跳间隔（10 秒）" in answer.content.decode()


ALARMS = [
    ({"servers": 1, "idle": 45.0}, "超过 10 个心跳周期没有队列"),
    ({"servers": 2, "queues": 1}, "2 台服务器只有 1 个队列"),
    ({"servers": 1, "asked_for": 4, "longest_asked": 95.0}, "应移交 4 个队列"),
    ({"servers": 0, "unowned": 64, "unowned_for": 30.0}, "64 个队列无归属"),
    ({"servers": 1, "unowned": 1, "unowned_for": 30.0}, "虽然有服务器在运行"),
    ({"servers": 1, "flapping": Flapping(1, "17", 9)}, "更换服务器超过 3 次"),
]


@pytest.mark.parametrize(("how", "expected"), ALARMS)
def test_an_alarm_is_in_chinese(how: dict[str, Any], expected: str) -> None:
    of_servers = {key: how[key] for key in ("idle", "asked_for", "longest_asked") if key in how}
    of_types = {key: how[key] for key in how if key not in {"servers", *of_servers}}
    servers = [alarming.server(number, **of_servers) for number in range(how["servers"])]
    with translation.override("zh-hans"):
        (alarm,) = queue_alarms([alarming.stands(*servers, **of_types)])
        assert expected in alarm.text
        assert not in_english(str(alarm))
    assert alarm.pool == "queues: orders"


@pytest.mark.parametrize(
    "words",
    [
        *((), ("show", "orders"), ("show", "ghosts"), ("plan", "orders", "--without", "late", "--with", "C:2")),
        *(("drain", "orders", "B"), ("pause", "ghosts"), ("resume", "orders"), ("add", "ghosts", "2..9")),
        *(("pin", "ghosts", "1", "--to", "web"), ("unpin", "ghosts", "1"), ("remove", "ghosts", "1")),
        *(
            ("add", "ghosts", "1"),
            ("remove", "ghosts", "7"),
            ("drain", "ghosts", "A"),
            ("add", "ghosts", "9..1"),
        ),
    ],
)
def test_the_command_speaks_chinese(orders: QueueGroup, chinese: None, words: tuple[str, ...]) -> None:
    ran = run("queues", *words)
    assert CHINESE.search(ran.all)
    assert not in_english(ran.all)


def test_the_help_of_each_of_its_words_is_in_chinese(chinese: None) -> None:
    actions = parser_of("resourcepool_queues")._actions
    subs = next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    for name, parser in subs.items():
        helps = [parser.description, *(each.help for each in parser._actions if each.dest != "help")]
        assert not [one for one in helps if not CHINESE.search(one or "")], name


def test_programs_are_answered_in_english(orders: QueueGroup, chinese: None) -> None:
    plan = ("plan", "orders", "--without", "late", "--with", "C:2")
    for words in (("show",), ("show", "orders"), plan, ("drain", "orders", "B")):
        ran = run("queues", *words, "--json")
        assert ran.code == 0
        assert not CHINESE.search(ran.all)
