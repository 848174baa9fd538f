"""The alarms about queues and their servers."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.events import sentence_for
from resourcepool.models import Move, Queue, QueueGroup
from resourcepool.queues import QueueServer
from resourcepool.status.alarms import AlarmKind, alarms
from resourcepool.status.queues.problems import Flapping, Stuck
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.queues.system import queue_alarms
from tests.eventually import eventually
from tests.queues.statuses import group_status, server_status

SETTINGS = {"heartbeat_every": 1.0, "judge_dead_after": 6.0, "was_served": True}


def server(pk: int = 1, **more: Any) -> ServerStatus:
    return server_status(pk, **{"name": "web", "ttl": 6.0, "expires_in": 5.5, **more})


def stands(*servers: ServerStatus, **more: Any) -> QueueGroupStatus:
    return group_status(*servers, **{**SETTINGS, "queues": 64, **more})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (stands(server()), []),
        (stands(), []),
        (stands(server(idle=10.0)), []),
        (stands(server(idle=10.1)), [AlarmKind.IDLE_SERVER]),
        (stands(server(idle=99, state="draining")), []),
        (stands(server(idle=99, expires_in=-1)), []),
        (stands(server(), server(2), queues=2), []),
        (stands(server(), server(2), queues=2, retiring=1), [AlarmKind.TOO_MANY_SERVERS]),
        (stands(server(), server(2, state="draining"), queues=1), []),
        (stands(server(asked_for=3, longest_asked=61.9)), []),
        (stands(server(asked_for=3, longest_asked=62.1)), [AlarmKind.DRAIN_OVERDUE]),
        (stands(server(asked_for=3, longest_asked=111, ttl=100)), []),
        (stands(server(asked_for=3, longest_asked=113, ttl=100)), [AlarmKind.DRAIN_OVERDUE]),
        (stands(server(queues=3, last_activity=9.9)), []),
        (stands(server(queues=3, last_activity=10.1)), [AlarmKind.STALLED]),
        (stands(server(queues=3, last_activity=59.9, in_hand=1)), []),
        (stands(server(queues=3, last_activity=60.1, in_hand=1)), [AlarmKind.STALLED]),
        (stands(server(queues=3, last_activity=60.1, in_hand=1), heartbeat_every=7), []),
        (stands(server(queues=3, last_activity=None)), []),
        (stands(server(queues=0, last_activity=99)), []),
        (stands(server(queues=3, last_activity=99, expires_in=-1)), []),
        (stands(server(queues=3, last_activity=99), is_paused=True), []),
        (stands(unowned=64, unowned_for=7.9), []),
        (stands(unowned=64, unowned_for=8.1), [AlarmKind.UNOWNED]),
        (stands(server(), unowned=1, unowned_for=8.1), [AlarmKind.UNOWNED]),
        (stands(unowned=64, unowned_for=8.1, was_served=False), [AlarmKind.UNOWNED]),
        (stands(server(), flapping=Flapping(3, "17", 9)), [AlarmKind.FLAPPING]),
        (stands(server(state="draining"), stuck=Stuck(3, "web #1", "7", "-")), [AlarmKind.DRAIN_STUCK]),
    ],
)
def test_a_queue_group_is_in_trouble_when(status: QueueGroupStatus, expected: list[AlarmKind]) -> None:
    assert [alarm.kind for alarm in queue_alarms([status])] == expected


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            stands(server(17, idle=45)),
            "orders: servers without a queue for more than 10 heartbeats: 1, for example web #17, for 45 s. ",
        ),
        (stands(server(1), server(2), queues=1), "orders: 2 servers for 1 queues: some servers have none. "),
        (
            stands(server(17, asked_for=4, longest_asked=95)),
            "orders: server web #17 must hand over queues (4), requested up to 95 s ago (allowed: 60 s): its work",
        ),
        (
            stands(server(17, queues=4, last_activity=45), server(18, queues=4, last_activity=20)),
            "orders: server web #17 has queues (4), but its code has not asked for work for 45 s: the code has",
        ),
        (
            stands(server(17, queues=4, last_activity=95, in_hand=1)),
            "orders: server web #17 has started no work for 95 s (allowed: 60 s); queues in hand: 1. Its work",
        ),
        (
            stands(unowned=64, unowned_for=30),
            "orders: no server is running; unowned queues: 64, for up to 30 s. Start a server.",
        ),
        (
            stands(
                server(), unowned=3, unowned_for=30, unowned_one="17", unowned_why="no server has zone=mars"
            ),
            (
                "orders: servers are running, but queues are unowned: 3, for up to 30 s. For example, queue 17: no"
                " server has zone=mars. See `manage.py resourcepool_queues show orders`."
            ),
        ),
        (
            stands(flapping=Flapping(1, "17", 9), name="big orders"),
            (
                "queues: big orders: queues that changed their server more than 3 times within 10 minutes: 1, most"
                " often queue 17 (9 times). Servers crash, restart or are drained repeatedly; `manage.py"
                " resourcepool_queues show 'big orders'` shows the reason for each move."
            ),
        ),
    ],
)
def test_it_says_what_to_do_next(status: QueueGroupStatus, said: str) -> None:
    (alarm,) = queue_alarms([status])
    assert said in str(alarm)


def test_queues_without_a_server_are_severe() -> None:
    (alarm,) = queue_alarms([stands(unowned=64, unowned_for=30)])
    assert alarm.is_severe


def found() -> dict[AlarmKind, str]:
    return {alarm.kind: alarm.text for alarm in alarms() if alarm.pool == "queues: orders"}


def orders(queues: int = 3, **settings: Any) -> QueueGroup:
    made = QueueGroup.objects.create(name="orders", **settings)
    Queue.objects.bulk_create([Queue(queue_group=made, queue_id=str(number)) for number in range(queues)])
    return made


class TestOfThisDatabase:
    def test_queues_that_never_had_a_server(self) -> None:
        made = orders()
        assert found() == {}  # added just now
        Queue.objects.filter(queue_group=made).update(since=DbLater(-30))
        assert found()[AlarmKind.UNOWNED].startswith("no server is running; unowned queues: 3, ")

    def test_a_queue_that_changed_its_server_four_times_in_ten_minutes(self) -> None:
        orders()
        moved("1", Move.Action.ASSIGNED, fence=1, from_server="")  # its first server
        for fence in (2, 3, 4):
            moved("1", Move.Action.HANDED_OVER, fence)
        moved("2", Move.Action.REQUESTED, 9)
        for fence in range(2, 9):
            moved("2", Move.Action.TAKEN_OVER, fence, at=DbLater(-601))
        assert found() == {}
        moved("1", Move.Action.TAKEN_OVER, fence=5)
        assert found()[AlarmKind.FLAPPING].startswith(
            "queues that changed their server more than 3 times within 10 minutes: 1, most often queue 1 (4 times)."
        )
        Queue.objects.filter(queue_id="1").delete()
        assert found() == {}  # removed queues raise no alarm

    def test_what_a_server_gave_up_because_it_left_is_no_restlessness(self) -> None:
        orders(2)
        for fence in range(1, 9):
            moved("1", Move.Action.UNASSIGNED, fence, reason=sentence_for("left", server="A #1"))
        assert AlarmKind.FLAPPING not in found()
        for fence in range(1, 5):
            moved(
                "0",
                Move.Action.UNASSIGNED,
                fence,
                reason=sentence_for("presumed_dead", server="A #1", seconds=6),
            )
        assert "queue 0 (4 times)" in found()[AlarmKind.FLAPPING]


def moved(queue_id: str, what: Move.Action, fence: int, **more: Any) -> None:
    more = {"at": DbLater(-1), "from_server": "A #1", **more}
    about = {"queue_group": "orders", "queue_pk": Queue.objects.get(queue_id=queue_id).pk, "queue_id": queue_id}
    Move.objects.create(**about, generation=fence, what=what, fence=fence, **more)


def test_a_server_without_a_queue_is_an_alarm_after_ten_heartbeats_until_it_gets_one() -> None:
    orders(1, heartbeat_every=0.1, judge_dead_after=30, handover_timeout=60, reload_every=0.02)
    with QueueServer("orders", name="A") as busy, QueueServer("orders", name="B") as idle:
        told = eventually(lambda: found().get(AlarmKind.IDLE_SERVER))
        assert f"10 heartbeats: 1, for example {idle.name}, for " in told
        assert AlarmKind.TOO_MANY_SERVERS in found()
        busy.close()
        eventually(lambda: len(idle.held) == 1)
        assert AlarmKind.IDLE_SERVER not in found()
