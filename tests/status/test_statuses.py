"""The states of rows, their explanations and alarms: each tells the truth, and only what has to be mended is grave."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import resourcepool
from resourcepool.events import sentence_for
from resourcepool.resources.state import State
from resourcepool.status.alarm import Thresholds
from resourcepool.status.badge import PAUSED, Level, resource_badge, work_badge
from resourcepool.status.elections import ElectionStatus
from resourcepool.status.locks.channels import ChannelStatus, SubscriptionStatus
from resourcepool.status.locks.cycles import Cycle, Link, lock_badge
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.queues.system import badge_of_server, queue_group_badge
from resourcepool.status.registry import named_systems
from resourcepool.status.work.dispensers import DispenserStatus
from resourcepool.status.work.streams import FirstTask, StreamStatus
from resourcepool.status.work.timers import FirstTimer, TopicStatus
from tests.queues.statuses import group_status, server_status

OK, BUSY, IDLE, WARN, BAD = Level
Case = tuple[Any, Level, str, str, list[str]]
TYPES = (StreamStatus, DispenserStatus, TopicStatus, ChannelStatus, ElectionStatus)


LIMITS = Thresholds(oldest_wait=60, oldest_task=600, late_timer=60, unread=600, sweep=600)
SYSTEMS = dict(zip(TYPES, named_systems().values(), strict=False))


def first(state: str = "ready", **more: Any) -> FirstTask:
    usual = {"key": "a", "type": "t", "outcome": "disk full", "age": 9.0, "waits": 0.0, "runs": None}
    return FirstTask(**{**usual, "state": state, **more})


def stream(**more: Any) -> StreamStatus:
    usual = {"name": "s", "leader": "", "term": 1, "since": None, "standbys": 0, "is_paused": False, "lanes": 1}
    depth = 0 if more.get("first") is None else 1
    counts = {"depth": depth, "first": None, "blocked": 0, "dead": 0, "done": 0, "failed": 0}
    return StreamStatus(**{**usual, **counts, **more})


LED: dict[str, Any] = {"leader": "web-1"}
BLOCKED: dict[str, Any] = {"first": first("blocked"), "blocked": 1}
NO_HANDLER = first(outcome=sentence_for("no_handler", name="t"))
START = "no consumer is leading; start one: `manage.py resourcepool_consume s`"
BLOCKS = "blocked by task a: disk full. Retry or discard the task"
FAILED = "failed for good, waiting for an operator: 2. Retry or discard them."
# status, gravity, code, explanation, alarms
STREAMS: list[Case] = [
    (stream(), IDLE, "idle", "", []),
    (stream(**LED), IDLE, "idle", "", []),
    (stream(**LED, first=first()), OK, "working", "", []),
    (stream(first=first()), BAD, "no_consumer", START, [f"no_consumer: {START}."]),
    (stream(**BLOCKED), BAD, "blocked", f"{START}; {BLOCKS}", [f"no_consumer: {START}; {BLOCKS}."]),
    (stream(**LED, **BLOCKED), BAD, "blocked", BLOCKS, [f"blocked: {BLOCKS}."]),
    (
        *(stream(**LED, **BLOCKED).redacted(), BAD, "blocked"),
        *("blocked by a task", ["blocked: blocked by a task."]),
    ),
    (
        *(stream(**LED, **BLOCKED, lanes=2), BAD, "partly_blocked", ""),
        ["blocked: tasks that block their lanes: 1; retry or discard them."],
    ),
    (
        *(stream(**LED, first=first(waits=5.0)), WARN, "retrying"),
        *("task a will be retried in 5 s; last error: disk full", []),
    ),
    (
        *(stream(**LED, first=first(waits=5.0), lanes=2).redacted(), OK, "working"),
        *("a task will be retried in 5 s", []),
    ),
    (
        *(stream(**LED, first=NO_HANDLER), WARN, "no_handler"),
        *(f"task a waits for a consumer with a handler for its type: {NO_HANDLER.outcome}", []),
    ),
    (stream(**LED, first=first(), is_paused=True), WARN, "paused", "it is paused", []),
    (stream(**BLOCKED, is_paused=True), WARN, "paused", f"{START}; it is paused; {BLOCKS}", []),
    (stream(**LED, first=first(), wrong="retries"), BAD, "invalid", "invalid settings: retries", []),
    (stream(dead=2, is_paused=True), WARN, "paused", "", [f"dead_tasks: {FAILED}"]),
    (
        *(stream(**LED, first=first(age=3_600.0)), OK, "working", ""),
        ["late_tasks: the first task, a, is 60 min old; unfinished: 1."],
    ),
    (
        *(stream(**LED, first=first(age=3_600.0)).redacted(), OK, "working", ""),
        ["late_tasks: the first task is 60 min old; unfinished: 1."],
    ),
]


def dispenser(**more: Any) -> DispenserStatus:
    usual = {
        "name": "d",
        "is_paused": False,
        "depth": 0,
        "oldest": None,
        "quiet": None,
        "live": 0,
        "expired": 0,
    }
    return DispenserStatus(**{**usual, "assigned": 0, "failed": 0, "done": 0, "rebuilt": None, **more})


NO_WORKER, ASSIGNED, TO_RETRY = (
    "no worker has a bucket",
    "all tasks are assigned",
    "failed tasks to retry or discard: 2",
)
EXPIRED = f"{ASSIGNED}; tasks in expired buckets return when the next worker asks for tasks"
NOT_HANDED_OUT = "late_tasks: no task has been handed out for 2 h"
READY: dict[str, Any] = {"depth": 2, "oldest": 7_200.0}
DISPENSERS: list[Case] = [
    (dispenser(), IDLE, "idle", "it has no unfinished tasks", []),
    (dispenser(depth=2, oldest=9.0, live=1), OK, "working", "", []),
    (dispenser(depth=2, oldest=9.0), BAD, "no_worker", NO_WORKER, []),
    (dispenser(**READY), BAD, "no_worker", NO_WORKER, [f"{NOT_HANDED_OUT} ({NO_WORKER}); ready: 2."]),
    (dispenser(**READY, is_paused=True), WARN, "paused", f"it is paused; {NO_WORKER}", []),
    (dispenser(**READY, live=1, quiet=7_200.0), OK, "working", "", [f"{NOT_HANDED_OUT}; ready: 2."]),
    (dispenser(**READY, live=1, quiet=60.0), OK, "working", "", []),
    (dispenser(depth=2, oldest=9.0, live=1, quiet=7_200.0), OK, "working", "", []),
    (dispenser(assigned=2, expired=1, quiet=60.0), BAD, "no_worker", EXPIRED, []),
    (
        dispenser(assigned=2, expired=1, quiet=7_200.0),
        BAD,
        "no_worker",
        EXPIRED,
        [f"{NOT_HANDED_OUT} ({EXPIRED})."],
    ),
    (dispenser(assigned=2, expired=1, live=1, quiet=7_200.0), BUSY, "all_assigned", EXPIRED, []),
    (dispenser(assigned=2, live=1), BUSY, "all_assigned", ASSIGNED, []),
    (dispenser(failed=2), BAD, "only_failed", TO_RETRY, [f"failed_tasks: {FAILED}"]),
    (
        *(dispenser(failed=2, assigned=1, live=1, is_paused=True), WARN, "paused"),
        *(f"it is paused; {ASSIGNED}; {TO_RETRY}", [f"failed_tasks: {FAILED}"]),
    ),
]


def topic(due_in: float | None = None, **more: Any) -> TopicStatus:
    timer = None if due_in is None else FirstTimer("t", "pending", "", due_in, is_handed=False)
    usual = {"name": "t", "is_paused": False, "pending": 0, "due": 0, "first": timer, "running": 0, "dead": 0}
    usual |= {"done": 0, "failed": 0, "nodes": ("web-1",), "refused": (), "handed": 0, "unclaimed": 0.0}
    return TopicStatus(**{**usual, **more})


NOBODY = "no live node handles it; start one: `manage.py resourcepool_timers`"
UNCLAIMED = "no Celery worker claims the timers handed over (2, the first for 60 min)"
HANDED: dict[str, Any] = {"handed": 2, "unclaimed": 3_600.0}
TOPICS: list[Case] = [
    (topic(), IDLE, "idle", "", []),
    (topic(60.0), IDLE, "waiting", "", []),
    (topic(-5.0, due=1), OK, "working", "", []),
    (topic(-7_200.0, due=2), BAD, "late", "", ["late_timers: timer t is 2 h late; due: 2."]),
    (topic(-7_200.0, due=2).redacted(), BAD, "late", "", ["late_timers: the first timer is 2 h late; due: 2."]),
    (topic(-61.0, due=1, nodes=()), BAD, "no_node", NOBODY, [f"no_node: {NOBODY}."]),
    (topic(60.0, nodes=()), BAD, "no_node", NOBODY, []),
    (
        *(topic(60.0, nodes=(), refused=(("web-1", "lacks zone=eu"), ("web-2", "too old"))), BAD, "no_node"),
        *("no live node handles it (web-1: lacks zone=eu; web-2: too old)", []),
    ),
    (topic(60.0, **HANDED), BAD, "unclaimed", UNCLAIMED, [f"unclaimed_timers: {UNCLAIMED}."]),
    (topic(60.0, handed=1, unclaimed=30.0), IDLE, "waiting", "", []),
    (topic(60.0, **HANDED, is_paused=True), WARN, "paused", f"it is paused; {UNCLAIMED}", []),
    (topic(-7_200.0, due=2, is_paused=True), WARN, "paused", "it is paused", []),
    (topic(-5.0, due=1, nodes=(), is_paused=True), WARN, "paused", f"it is paused; {NOBODY}", []),
    (topic(dead=2, is_paused=True), WARN, "paused", "", [f"dead_timers: {FAILED}"]),
]


def channel(*subscriptions: SubscriptionStatus, published: int = 0, listeners: int = 0) -> ChannelStatus:
    return ChannelStatus("c", 9, 9, published, listeners, subscriptions)


def subscription(holder: str = "", unread: int = 0, lost: int = 0, behind: float = 3.0) -> SubscriptionStatus:
    return SubscriptionStatus("s", holder, 1, unread, behind, lost, 0)


UNREAD = "s has no reader; unread messages: 3"
LOST = ["missed_messages: messages removed before subscription s read them: 3."]
CHANNELS: list[Case] = [
    (channel(published=3), WARN, "no_reader", "", []),
    (channel(), WARN, "no_reader", "", []),
    (channel(listeners=1), IDLE, "quiet", "", []),
    (channel(listeners=1, published=3), OK, "working", "", []),
    (channel(subscription("web-1"), published=3), OK, "working", "", []),
    (channel(subscription(unread=3), published=3), BAD, "lagging", UNREAD, []),
    (
        *(channel(subscription(unread=3, behind=1_000.0)), BAD, "lagging", UNREAD),
        ["lagging: subscription s has unread messages: 3, the oldest for 17 min."],
    ),
    (channel(subscription("web-1", lost=3)), BAD, "losing", "messages removed before s read them: 3", LOST),
]
ELECTIONS: list[Case] = [
    (ElectionStatus("e", "web-1", 3, 5.0, 9.0, 0), OK, "led", "", []),
    (ElectionStatus("e", "", 3, None, None, 1), WARN, "electing", "", []),
    (ElectionStatus("e", "", 3, None, None, 0), BAD, "no_leader", "no leader and no standbys", []),
]


@pytest.mark.parametrize(
    ("status", "level", "code", "explanation", "alarms"),
    [*STREAMS, *DISPENSERS, *TOPICS, *CHANNELS, *ELECTIONS],
)
def test_a_status_has_one_state_an_explanation_and_alarms(
    status: Any, level: Level, code: str, explanation: str, alarms: list[str]
) -> None:
    assert (status.badge.level, status.status, status.explanation) == (level, code, explanation)
    raise_alarms = SYSTEMS[type(status)].alarms
    raised = raise_alarms([status], LIMITS) if raise_alarms else ()
    assert [f"{alarm.kind.value}: {alarm.text}" for alarm in raised] == alarms


HUNG = server_status(queues=2, last_activity=3_600.0)


@pytest.mark.parametrize(
    ("status", "level", "code"),
    [
        (group_status(server_status()), OK, "working"),
        (group_status(), BAD, "no_server"),
        (group_status(server_status(expires_in=-1.0)), BAD, "no_server"),
        (group_status(HUNG), BAD, "server_hangs"),
        (group_status(server_status(), unowned=1, unowned_why="pinned"), BAD, "unowned"),
        (group_status(queues=0), IDLE, "no_queues"),
        (group_status(server_status(), is_paused=True), WARN, "paused"),
    ],
)
def test_a_queue_group_has_one_state(status: QueueGroupStatus, level: Level, code: str) -> None:
    badge = queue_group_badge(status)
    assert (badge.level, badge.code) == (level, code)


@pytest.mark.parametrize(
    ("one", "level", "code"),
    [
        (server_status(), OK, "up"),
        (server_status(expires_in=45.0), WARN, "late"),
        (server_status(state="draining"), WARN, "draining"),
        (server_status(expires_in=45.0, state="draining"), WARN, "draining_late"),
        (HUNG, BAD, "hangs"),
        (server_status(expires_in=-1.0), BAD, "presumed_dead"),
    ],
)
def test_a_server_has_one_state(one: ServerStatus, level: Level, code: str) -> None:
    badge = badge_of_server(group_status(one), one)
    assert (badge.level, badge.code) == (level, code)


CYCLE = Cycle((Link("a", "a", LockKind.LOCK, "orders", 20.0, LockKind.LOCK, "stock"),))


@pytest.mark.parametrize(
    ("one", "level", "code"),
    [
        (LockStatus(LockKind.LOCK, "orders", permits=1, held=1), BAD, "deadlock"),
        (LockStatus(LockKind.LOCK, "other", permits=1, held=1), BUSY, "held"),
        (LockStatus(LockKind.SEMAPHORE, "orders", permits=3, held=1), BUSY, "partly_held"),
        (LockStatus(LockKind.LOCK, "other", permits=1), OK, "free"),
        (LockStatus(LockKind.SEMAPHORE, "none"), BAD, "no_permits"),
        (LockStatus(LockKind.BARRIER, "b", creator="ann"), BUSY, "blocking"),
        (LockStatus(LockKind.BARRIER, "b"), IDLE, "removed"),
        (LockStatus(LockKind.CONDITION, "c", waiters=2), BUSY, "has_waiters"),
        (LockStatus(LockKind.CONDITION, "c"), IDLE, "no_waiters"),
    ],
)
def test_a_lock_has_one_state(one: LockStatus, level: Level, code: str) -> None:
    badge = lock_badge(one, [CYCLE])
    assert (badge.level, badge.code) == (level, code)


@pytest.mark.parametrize(
    ("state", "is_late", "level"),
    [
        ("ready", False, IDLE),
        ("pending", False, IDLE),
        ("pending", True, BAD),
        ("running", False, BUSY),
        ("done", False, OK),
        ("dead", False, BAD),
        ("discarded", False, IDLE),
    ],
)
def test_work_has_one_state(state: str, is_late: bool, level: Level) -> None:
    row = SimpleNamespace(state=state, failed_states=("dead",), get_state_display=lambda: state)
    assert work_badge(row, late=is_late).level == level


def test_pages_have_no_states_besides_these() -> None:
    """Each state is drawn by ``Badge``, with the colour of its gravity."""
    templates = Path(resourcepool.__file__).parent.joinpath("templates").rglob("*.html")
    assert not [path.name for path in templates if "resourcepool-state" in path.read_text()]
    assert PAUSED.html == '<span class="resourcepool-state warn">paused</span>'


def test_only_what_cannot_be_used_is_grave() -> None:
    grave = {state for state in State if resource_badge(state).level == BAD}
    assert grave == {State.QUARANTINED, State.OUT}
