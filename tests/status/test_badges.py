"""The states of rows: each tells the truth, and only what somebody has to mend is grave."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import resourcepool
from resourcepool.resources.state import State
from resourcepool.status.badge import PAUSED, Level, resource_badge, work_badge
from resourcepool.status.elections import ElectionStatus
from resourcepool.status.locks.channels import ChannelStatus, SubscriptionStatus
from resourcepool.status.locks.cycles import Cycle, Link, lock_badge
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.queues.system import badge_of_server, queue_group_badge
from resourcepool.status.work.dispensers import DispenserStatus
from resourcepool.status.work.streams import FirstTask, StreamStatus
from resourcepool.status.work.timers import FirstTimer, TopicStatus

OK, BUSY, IDLE, WARN, BAD = Level


def first(state: str = "ready", **more: Any) -> FirstTask:
    return FirstTask(
        **{
            "key": "a",
            "type": "t",
            "state": state,
            "outcome": "",
            "age": 9.0,
            "waits": 0.0,
            "runs": None,
            **more,
        }
    )


def stream(**more: Any) -> StreamStatus:
    usual = {"name": "s", "leader": "", "term": 1, "since": None, "standbys": 0, "is_paused": False, "lanes": 1}
    return StreamStatus(
        **{**usual, "depth": 0, "first": None, "blocked": 0, "dead": 0, "done": 0, "failed": 0, **more}
    )


LED: dict[str, Any] = {"leader": "web-1"}
BLOCKED: dict[str, Any] = {"first": first("blocked"), "blocked": 1}
STREAMS = [
    (stream(), IDLE, "idle"),
    (stream(**LED), IDLE, "idle"),
    (stream(**LED, first=first()), OK, "working"),
    (stream(first=first()), BAD, "no_consumer"),
    (stream(**BLOCKED), BAD, "blocked"),
    (stream(**LED, **BLOCKED), BAD, "blocked"),
    (stream(**LED, **BLOCKED, lanes=2), BAD, "partly_blocked"),
    (stream(**LED, first=first(waits=5.0)), WARN, "retrying"),
    (stream(**LED, first=first(waits=5.0), lanes=2), OK, "working"),
    (stream(**LED, first=first(outcome=SimpleNamespace(code="no_handler"))), WARN, "no_handler"),
    (stream(**LED, first=first(), is_paused=True), WARN, "paused"),
    (stream(**LED, first=first(), wrong="retries"), BAD, "invalid"),
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


DISPENSERS = [
    (dispenser(), IDLE, "idle"),
    (dispenser(depth=2, live=1), OK, "working"),
    (dispenser(depth=2), BAD, "no_worker"),
    (dispenser(assigned=2, expired=1), BAD, "no_worker"),
    (dispenser(assigned=2, live=1), BUSY, "all_assigned"),
    (dispenser(failed=1), BAD, "only_failed"),
    (dispenser(depth=2, live=1, is_paused=True), WARN, "paused"),
]


def topic(due_in: float | None = None, **more: Any) -> TopicStatus:
    timer = None if due_in is None else FirstTimer("t", "pending", "", due_in, is_handed=False)
    usual = {"name": "t", "is_paused": False, "pending": 0, "due": 0, "first": timer, "running": 0, "dead": 0}
    usual |= {"done": 0, "failed": 0, "nodes": ("web-1",), "refused": (), "handed": 0, "unclaimed": 0.0}
    return TopicStatus(**{**usual, **more})


TOPICS = [
    (topic(), IDLE, "idle"),
    (topic(60.0), IDLE, "waiting"),
    (topic(-5.0, due=1), OK, "working"),
    (topic(-61.0, due=1), BAD, "late"),
    (topic(-61.0, due=1, nodes=()), BAD, "no_node"),
    (topic(60.0, nodes=()), BAD, "no_node"),
    (topic(60.0, handed=1, unclaimed=3_600.0), BAD, "unclaimed"),
    (topic(60.0, is_paused=True), WARN, "paused"),
]


def channel(*subscriptions: SubscriptionStatus, published: int = 0, listeners: int = 0) -> ChannelStatus:
    return ChannelStatus("c", 9, 9, published, listeners, subscriptions)


def subscription(holder: str = "", unread: int = 0, lost: int = 0) -> SubscriptionStatus:
    return SubscriptionStatus("s", holder, 1, unread, 3.0, lost, 0)


CHANNELS = [
    (channel(published=3), WARN, "no_reader"),
    (channel(), WARN, "no_reader"),
    (channel(listeners=1), IDLE, "quiet"),
    (channel(listeners=1, published=3), OK, "working"),
    (channel(subscription("web-1"), published=3), OK, "working"),
    (channel(subscription("", unread=3), published=3), BAD, "lagging"),
    (channel(subscription("web-1", lost=3)), BAD, "losing"),
]
ELECTIONS = [
    (ElectionStatus("e", "web-1", 3, 5.0, 9.0, 0), OK, "led"),
    (ElectionStatus("e", "", 3, None, None, 1), WARN, "electing"),
    (ElectionStatus("e", "", 3, None, None, 0), BAD, "no_leader"),
]


@pytest.mark.parametrize(("status", "level", "code"), [*STREAMS, *DISPENSERS, *TOPICS, *CHANNELS, *ELECTIONS])
def test_a_status_has_one_state(status: Any, level: Level, code: str) -> None:
    assert (status.badge.level, status.status) == (level, code)


def group(*servers: ServerStatus, queues: int = 2, **more: Any) -> QueueGroupStatus:
    usual = {"heartbeat_every": 5.0, "judge_dead_after": 60.0, "reload_every": 5.0, "handover_timeout": 5.0}
    usual |= {"generation": 1, "assigned": None, "assigned_by": "", "is_paused": False, "strategy": "even"}
    return QueueGroupStatus(**{"pk": 1, "name": "g", **usual, "queues": queues, "servers": servers, **more})


def server(expires_in: float = 58.0, **more: Any) -> ServerStatus:
    usual = {"pk": 1, "name": "A", "holder": "h", "state": "up", "weight": 1, "labels": {}, "limit": None}
    return ServerStatus(
        **{**usual, "ttl": 60.0, "expires_in": expires_in, "registered": 9.0, "idle": None, **more}
    )


HUNG = server(queues=2, last_activity=3_600.0)


@pytest.mark.parametrize(
    ("status", "level", "code"),
    [
        (group(server()), OK, "working"),
        (group(), BAD, "no_server"),
        (group(server(-1.0)), BAD, "no_server"),
        (group(HUNG), BAD, "server_hangs"),
        (group(server(), unowned=1, unowned_why="pinned"), BAD, "unowned"),
        (group(queues=0), IDLE, "no_queues"),
        (group(server(), is_paused=True), WARN, "paused"),
    ],
)
def test_a_queue_group_has_one_state(status: QueueGroupStatus, level: Level, code: str) -> None:
    badge = queue_group_badge(status)
    assert (badge.level, badge.code) == (level, code)


@pytest.mark.parametrize(
    ("one", "level", "code"),
    [
        (server(), OK, "up"),
        (server(45.0), WARN, "late"),
        (server(state="draining"), WARN, "draining"),
        (server(45.0, state="draining"), WARN, "draining_late"),
        (HUNG, BAD, "hangs"),
        (server(-1.0), BAD, "presumed_dead"),
    ],
)
def test_a_server_has_one_state(one: ServerStatus, level: Level, code: str) -> None:
    badge = badge_of_server(group(one), one)
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
