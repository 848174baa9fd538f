"""Why a queue has no owner."""

import pytest

from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import QueueSnapshot, ServerSnapshot
from resourcepool.status.queues.forecast import UnownedQueues, undrained_queues, unowned_queues
from resourcepool.status.queues.problems import PossibleOwner, why_no_owner

EU, MARS = {"zone": "eu"}, {"zone": "mars"}
BOTH = {"zone": "eu", "disk": "ssd"}


@pytest.mark.parametrize(
    ("labels", "candidates", "said"),
    [
        ({}, [], "no server is running"),
        (MARS, [PossibleOwner(EU)], "no living server has zone=mars"),
        (BOTH, [PossibleOwner(EU)], "no living server has disk=ssd"),
        (
            BOTH,
            [PossibleOwner(EU), PossibleOwner({"disk": "ssd"})],
            "no living server has all of zone=eu, disk=ssd",
        ),
        (
            EU,
            [PossibleOwner(EU, is_draining=True), PossibleOwner(MARS)],
            "every server that may have it is draining",
        ),
        (
            EU,
            [PossibleOwner(EU, is_full=True)],
            "every server that may have it has as many queues as its limit allows",
        ),
        (EU, [PossibleOwner(EU)], "not assigned yet; a transaction may keep its row locked"),
    ],
)
def test_nobody_gets_a_queue_because(
    labels: dict[str, str], candidates: list[PossibleOwner], said: str
) -> None:
    assert why_no_owner(labels, candidates) == said


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (
            [PossibleOwner({}, is_full=True, name="A"), PossibleOwner({}, is_full=True, name="B")],
            "pinned to A, which has no room; every server that may have it has as many queues as its limit allows",
        ),
        (
            [PossibleOwner({}, is_full=True, name="B")],
            "every server that may have it has as many queues as its limit allows",
        ),
        ([PossibleOwner({}, is_draining=True, name="A")], "every server that may have it is draining"),
    ],
)
def test_a_pin_is_named_where_there_is_a_server_for_it(candidates: list[PossibleOwner], said: str) -> None:
    assert why_no_owner({}, candidates, "A") == said


def test_queues_that_nobody_would_get_are_told_by_reason() -> None:
    queues = [QueueSnapshot(pk, f"q{pk}", labels=MARS) for pk in range(1, 9)]
    queues += [
        QueueSnapshot(10, "full"),
        QueueSnapshot(11, "had", cur=1),
        QueueSnapshot(12, "gone", is_retiring=True),
    ]
    queues += [QueueSnapshot(13, "pinned", pin="A")]
    staying = [ServerSnapshot(Member(1, "A", limit=1))]
    assert unowned_queues(queues, [], staying) == [
        UnownedQueues("no living server has zone=mars", 8, ["q1", "q2", "q3", "q4", "q5"]),
        UnownedQueues("every server that may have it has as many queues as its limit allows", 1, ["full"]),
        UnownedQueues(
            "pinned to A, which has no room; every server that may have it has as many queues as its limit allows",
            1,
            ["pinned"],
        ),
    ]


def test_queues_that_stay_with_who_drains_are_told_by_reason() -> None:
    draining = ServerSnapshot(Member(1, "A", labels=EU), is_draining=True)
    other = ServerSnapshot(Member(2, "B"))
    queues = [QueueSnapshot(pk, f"q{pk}", cur=1, labels=EU) for pk in range(1, 4)]
    queues += [QueueSnapshot(4, "asked", cur=1, req=2), QueueSnapshot(5, "elsewhere", cur=2)]
    why = "no living server has zone=eu"
    assert undrained_queues(queues, [], [draining, other]) == [UnownedQueues(why, 3, ["q1", "q2", "q3"])]
    assert undrained_queues(queues[:1], [], [draining]) == [
        UnownedQueues("no other server is running", 1, ["q1"])
    ]
    assert undrained_queues(queues, [], [other]) == []
