"""Rows of each system that has several pages and a command, and what is asked of it in Chinese."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.events import sentence_for
from resourcepool.models import (
    Bucket,
    Dispenser,
    DispenserTask,
    Move,
    Queue,
    QueueGroup,
    Server,
    Stream,
    Task,
    Timer,
    TimerNode,
    Topic,
)
from resourcepool.queues import administration
from resourcepool.taskqueue import NewTask, submit_many
from tests.admin.queues.scene import queue_group, server
from tests.app.rows import granted
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks


class Scene(NamedTuple):
    """One system.

    Attributes:
        make: creates its rows; ``models``: whose rows are removed afterwards.
        keys: returns the keys of the rows, by their names in the addresses.
        pages: addresses below ``/admin/resourcepool/`` whose pages are read.
        panel: its panels of the dashboard, and a sentence in one of them.
        outcomes: addresses, what is entered there, and what is answered.
        command: its command; ``words``: what it is told; ``typed``: English words in its answers, as they are typed.
        names: English words on all surfaces that are names of rows.
    """

    make: Callable[[], object]
    models: Sequence[type[Model]]
    keys: Callable[[], Mapping[str, Any]]
    pages: Sequence[str]
    panel: tuple[str, str]
    outcomes: Sequence[tuple[str, Mapping[str, Any], str]]
    command: str
    words: Sequence[str]
    typed: set[str]
    names: set[str]


def queues() -> None:
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


def streams() -> None:
    """The first task of oracle blocks it, others have finished; idle has no consumer."""
    granted(Stream.objects.create(name="oracle"), "web")
    submit_many("oracle", [NewTask("note", key=str(number)) for number in range(4)])
    Task.objects.filter(key="0").update(state="blocked", outcome=sentence_for("no_handler", name="note"))
    Task.objects.filter(key="1").update(state="dead", finished_at=timezone.now())
    Task.objects.filter(key="2").update(state="done", finished_at=timezone.now())
    Stream.objects.create(name="idle")
    submit_many("idle", [NewTask("note", key="0")])
    granted(ElectionRow.objects.create(name="reports"), "web")


def dispensers() -> None:
    """A task of each state, a live bucket and an expired one; idle has nothing."""
    dispenser()
    tasks("1", "2")
    bucket("alice", "3")
    bucket("bob", "4", lasts=-1)
    failed("5", outcome=sentence_for("bucket_expired", count=5))
    dispenser("idle")


def topics() -> None:
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


SCENES = {
    "queues": Scene(
        queues,
        (Move, Queue, Server, QueueGroup),
        lambda: {
            "type": QueueGroup.objects.get(name="orders").pk,
            "queue": Queue.objects.get(queue_group__name="orders", queue_id="q1").pk,
            "server": Server.objects.get(name="A").pk,
        },
        [
            *("queuegroup/", "queuegroup/add/", "queuegroup/{type}/change/", "queuegroup/{type}/delete/"),
            *("queuegroup/{type}/operate/pause/", "queuegroup/{type}/operate/resume/"),
            *("server/", "server/{server}/change/"),
            *("server/{server}/operate/drain/", "server/{server}/operate/undrain/"),
            *("queue/", "queue/add/", "queue/{queue}/change/", "queue/{queue}/delete/"),
            *("queue/{queue}/operate/pin/", "queue/{queue}/operate/unpin/", "move/"),
        ],
        ("rpq0 rpq1", "未能及时完成该队列上的工作"),
        [
            ("queuegroup/{type}/operate/resume/", {}, "已恢复：队列组 orders。"),
            ("server/{server}/operate/undrain/", {}, "1 台已结束排空："),
            ("queue/{queue}/operate/pin/", {"server": "A"}, "已固定：队列 orders / "),
            ("queue/{queue}/delete/", {}, "，或待其服务器完成工作后移除。"),
            ("queue/add/", {"queue_group": "orders", "queues": "n1\nn2", "labels": "{}"}, "已添加 2 个队列。"),
            ("queue/add/", {"queue_group": "orders", "queues": "q1", "labels": "{}"}, "已存在于 orders 中"),
            (
                "queue/add/",
                {"queue_group": "orders", "queues": "x", "labels": '{"a": 1}'},
                "每个标签及其值必须是 1 到 50 个",
            ),
            (
                "queuegroup/add/",
                {
                    "name": "x",
                    "strategy": "sticky",
                    "heartbeat_every": 5,
                    "judge_dead_after": 2,
                    "reload_every": 1,
                    "handover_timeout": 9,
                },
                "至少为两个心跳间隔（10 秒）",
            ),
        ],
        "queues",
        [
            *("", "show orders", "show ghosts", "plan orders --without late --with C:2"),
            *("drain orders B", "pause ghosts", "resume orders", "add ghosts 2..9", "add ghosts 1"),
            *("pin ghosts 1 --to web", "unpin ghosts 1", "remove ghosts 1", "remove ghosts 7"),
            *("drain ghosts A", "add ghosts 9..1"),
        ],
        set(),
        {"ghosts", "late", "eu", "zone", "main"},
    ),
    "streams": Scene(
        streams,
        (Task, Stream, ElectionRow),
        lambda: {"task": Task.objects.get(stream="oracle", key="0").pk},
        [
            *("stream/", "stream/add/", "stream/oracle/change/", "stream/idle/change/"),
            *("stream/oracle/operate/pause/", "stream/idle/operate/pause/"),
            *("task/", "task/?status=unfinished", "task/{task}/change/"),
            *("task/{task}/operate/retry/", "task/{task}/operate/discard/"),
            *("election/", "election/reports/change/"),
        ],
        ("rp-streams", "消费者的进程中没有类型“note”的处理函数"),
        [
            ("task/{task}/operate/retry/", {}, "已重新就绪：任务 oracle/0。"),
            ("stream/oracle/operate/pause/", {}, "已暂停：任务流 oracle。"),
        ],
        "streams",
        [
            *("tasks oracle", "tasks nix", "tasks oracle --limit 1", "", "show oracle", "show nix", "add new"),
            *("add new --lanes 0", "pause nix", "retry oracle nix", "--watch 9 pause oracle", "pause oracle"),
            *("resume oracle", "retry oracle 0", "retry oracle 2", "retry oracle"),
            *("retry oracle 0 --state dead", "retry oracle --state dead", "retry oracle --state skipped"),
            "discard oracle 0 --reason 卡住了",
        ],
        {"nix", "new", "lanes", "stream", "key", "dead", "yes", "show", "tasks", "after"},
        {"oracle", "reports", "note", "ttl", "NAME"},
    ),
    "dispensers": Scene(
        dispensers,
        (DispenserTask, Bucket, Dispenser),
        lambda: {
            "task": DispenserTask.objects.get(key="5").pk,
            "bucket": Bucket.objects.get(name="alice").pk,
        },
        [
            *("dispenser/", "dispenser/reviews/change/", "dispenser/idle/change/"),
            *("dispenser/reviews/operate/pause/", "bucket/", "bucket/{bucket}/change/"),
            *("bucket/{bucket}/operate/revoke/", "dispensertask/", "dispensertask/?state=ready"),
            *("dispensertask/{task}/change/", "dispensertask/{task}/operate/retry/"),
            "dispensertask/{task}/operate/discard/",
        ],
        ("rp-dispensers", "没有未完成的任务"),
        [("bucket/{bucket}/operate/revoke/", {}, "已收回：任务桶 reviews/alice。")],
        "dispenser",
        [
            *("tasks reviews", "tasks nix", "tasks reviews --after zz", "", "show reviews", "show nix"),
            *("--watch 9 pause reviews", "pause nix", "pause reviews", "resume reviews", "retry reviews nix"),
            *("retry reviews 5", "retry reviews 1", "retry reviews", "retry reviews --state failed"),
            *("retry reviews --state discarded", "discard reviews 3 --reason 无", "revoke reviews alice"),
            *("revoke reviews nix", "add reviews 6 1", "add reviews 6", "add reviews 6 1 6 2"),
            *("add reviews 6 nix", "clear reviews", "clear reviews --yes"),
        ],
        {
            "nix",
            "dispenser",
            "key",
            "keys",
            "Keys",
            "KEY",
            "SCORE",
            "failed",
            "discarded",
            "yes",
            "show",
            "tasks",
        },
        {"reviews", "alice", "bob", "film"},
    ),
    "topics": Scene(
        topics,
        (Timer, Topic, TimerNode),
        lambda: {name: Timer.objects.get(name=name[1:]).pk for name in ("t0", "t1")},
        [
            *("topic/", "topic/orders/change/", "topic/idle/change/", "topic/orders/operate/pause/"),
            *("timer/", "timer/?status=late", "timer/{t0}/change/"),
            *(f"timer/{{t0}}/operate/{act}/" for act in ("fire", "cancel", "retry", "discard")),
            *("timernode/", "timernode/web/change/"),
        ],
        ("rp-topics", "web: 是金丝雀节点"),
        [
            ("timer/{t1}/operate/fire/", {}, "现已到期：定时器 orders/1。"),
            ("timer/{t0}/operate/cancel/", {}, "已取消：定时器 orders/0。"),
            ("topic/orders/operate/pause/", {}, "已暂停：定时器主题 orders。"),
        ],
        "topics",
        [
            *("timers orders", "timers nix", "timers orders --state dead", "", "show orders", "show nix"),
            *("pause nix", "pause orders", "resume orders", "fire orders nix", "fire orders 0 1"),
            *("cancel orders 0 2", "retry orders", "retry orders 2", "retry orders 0 --state dead"),
            *("fire orders --state pending", "retry idle --state dead", "discard orders 0 --reason 卡住了"),
            "--watch 9 pause orders",
        ],
        {"nix", "topic", "name", "yes", "show", "timers"},
        {"Ttl", "once", "zone", "eu", "canary", "manage", "py"},
    ),
}
