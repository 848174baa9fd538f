"""Moves are written down in few statements, whatever people have named things."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.models import Move, QueueGroup
from resourcepool.queues import reassignment
from resourcepool.queues.planning.assignment import QueueSnapshot
from resourcepool.queues.planning.changes import Change

pytestmark = pytest.mark.usefixtures("transactional_db")

ODD = """'"\\ %s {"a": [null]} $1 é 队列 🐘"""


def test_a_move_is_written_down_as_it_is_named() -> None:
    queue = QueueSnapshot(7, ODD, cur=2, fence=4)
    changes = [
        Change(queue, Move.Action.HANDED_OVER, 3, ODD),
        Change(queue, Move.Action.UNASSIGNED, None, "x" * 600),
        Change(queue, Move.Action.REQUESTED, 3, ""),
    ]
    reassignment.record("default", QueueGroup(name=ODD), 9, changes, {2: f"{ODD} #2", 3: "B #3"})
    handed, freed, asked = Move.objects.order_by("pk").values()
    assert handed.pop("at") == freed.pop("at")
    assert handed == {
        "id": handed["id"],
        "queue_group": ODD,
        "generation": 9,
        "queue_pk": 7,
        "queue_id": ODD,
        "fence": 5,
        "what": "handed_over",
        "from_server": f"{ODD} #2",
        "to_server": "B #3",
        "reason": ODD,
    }
    assert (freed["to_server"], freed["reason"]) == ("", "x" * 499 + "…")
    assert (asked["to_server"], asked["fence"], asked["reason"]) == ("B #3", 4, "")


def test_ten_thousand_moves_take_two_statements() -> None:
    changes = [
        Change(QueueSnapshot(pk, str(pk)), Move.Action.ASSIGNED, 1, "it had no owner") for pk in range(10_000)
    ]
    with CaptureQueriesContext(connection) as queries:
        reassignment.record("default", QueueGroup(name="orders"), 1, changes, {1: "A #1"})
    assert len(queries) == 2
    assert list(Move.objects.order_by("pk").values_list("queue_pk", flat=True)) == list(range(10_000))
