"""Plans as tables, without a database."""

from typing import Any

import pytest

from resourcepool.queues.planning.assignment import Member, QueueSnapshot
from resourcepool.queues.planning.changes import (
    MAX_COMMIT_DELAY,
    Change,
    hand_over,
    plan,
)
from resourcepool.queues.planning.strategies import STRATEGIES

A, B, C = 1, 2, 3
NAMES = {A: "A", B: "B", C: "C"}
TTL, DRAIN = 6.0, 60.0


def worker(pk: int, **more: Any) -> Member:
    return Member(pk, NAMES[pk], ttl=TTL, **more)


def queue(pk: int = 1, cur: int | None = None, req: int | None = None, **more: Any) -> QueueSnapshot:
    return QueueSnapshot(pk, str(pk), cur, req, fence=7, **more)


def planned(
    queues: list[QueueSnapshot], workers: list[Member], **more: Any
) -> list[tuple[str, int, int | None]]:
    changes = plan(queues, workers, STRATEGIES[more.pop("strategy", "sticky")], DRAIN, **more)
    return [(str(change.what), change.queue.pk, change.to) for change in changes]


ALIVE, DEAD, DRAINING = worker(A), worker(A, is_alive=False), worker(A, is_draining=True)
OTHER, DEAD_B, EU_B = worker(B), worker(B, is_alive=False), worker(B, labels={"zone": "eu"})
EU = {"labels": {"zone": "eu"}}
asked, late = {"requested_ago": 1.0}, {"requested_ago": DRAIN}


@pytest.mark.parametrize(
    ("why", "one", "workers", "expected"),
    [
        ("nobody had it", queue(), [ALIVE], ("assigned", A)),
        ("no server is running", queue(), [], None),
        ("it is where it should be", queue(cur=A), [ALIVE], None),
        ("its owner is dead", queue(cur=A), [DEAD, OTHER], ("assigned", B)),
        ("its owner is dead and no other server lives", queue(cur=A), [DEAD], ("unassigned", None)),
        ("its owner's row is gone", queue(cur=A), [OTHER], ("assigned", B)),
        ("its owner drains", queue(cur=A), [DRAINING, OTHER], ("requested", B)),
        ("its owner drains, and there is no other server", queue(cur=A), [DRAINING], None),
        ("it is requested already", queue(cur=A, req=B, **asked), [DRAINING, OTHER], None),
        ("requested by a dead server", queue(cur=A, req=B, **asked), [ALIVE, DEAD_B], ("cancelled", A)),
        ("requested by a removed server", queue(cur=A, req=B, **asked), [ALIVE], ("cancelled", A)),
        ("its owner died while asked", queue(cur=A, req=B, **asked), [DEAD, OTHER], ("assigned", B)),
        ("both died", queue(cur=A, req=B, **asked), [DEAD, DEAD_B, worker(C)], ("assigned", C)),
        ("its owner is late", queue(cur=A, req=B, **late), [DRAINING, OTHER], ("taken_over", B)),
        ("late for a dead one", queue(cur=A, req=B, **late), [DRAINING, DEAD_B, worker(C)], ("taken_over", C)),
        ("late, but there is no other server", queue(cur=A, req=B, **late), [DRAINING], ("cancelled", None)),
        ("it is removed and unowned", queue(is_retiring=True), [ALIVE], ("removed", None)),
        ("it is removed while worked on", queue(cur=A, is_retiring=True, **asked), [ALIVE], None),
        ("removed, its owner is late", queue(cur=A, is_retiring=True, **late), [ALIVE], ("removed", None)),
        ("removed, its owner is dead", queue(cur=A, is_retiring=True, **asked), [DEAD], ("removed", None)),
        ("no server has its labels", queue(**EU), [ALIVE], None),
        ("its owner lacks its labels", queue(cur=A, **EU), [ALIVE, EU_B], ("requested", B)),
        ("everybody lacks its labels", queue(cur=A, **EU), [ALIVE, OTHER], ("requested", None)),
        ("all lack them, and it is asked back", queue(cur=A, **EU, **asked), [ALIVE, OTHER], None),
        (
            "all lack them, also who asked",
            queue(cur=A, req=B, **EU, **asked),
            [ALIVE, OTHER],
            ("requested", None),
        ),
        ("all lack them, and its owner is late", queue(cur=A, **EU, **late), [ALIVE], ("unassigned", None)),
        ("all lack them, and its owner drains", queue(cur=A, **EU), [DRAINING, OTHER], ("requested", None)),
        ("asked back, and somebody has them now", queue(cur=A, **EU, **asked), [ALIVE, EU_B], ("requested", B)),
        ("asked back, and its owner may have it again", queue(cur=A, **asked), [ALIVE], ("cancelled", A)),
        ("it is pinned elsewhere", queue(cur=A, pin="B"), [ALIVE, OTHER], ("requested", B)),
        ("it is pinned to a server that is not running", queue(cur=A, pin="C"), [ALIVE, OTHER], None),
    ],
)
def test_what_becomes_of_one_queue(
    why: str, one: QueueSnapshot, workers: list[Member], expected: tuple[str, int | None] | None
) -> None:
    assert planned([one], workers) == ([(expected[0], 1, expected[1])] if expected else []), why


def test_what_is_asked_for_but_belongs_where_it_is_stays_however_late_its_owner_is() -> None:
    one = queue(cur=A, req=B, **late)
    assert planned([one], [ALIVE, OTHER], strategy="round_robin") == [("cancelled", 1, A)]


def test_what_is_asked_for_by_one_that_drains_stays() -> None:
    one = queue(cur=A, req=B, **asked)
    assert planned([one], [ALIVE, worker(B, is_draining=True)]) == [("cancelled", 1, A)]


@pytest.mark.parametrize(
    ("ago", "ttl", "expected"),
    [
        (59.9, TTL, []),
        (60.0, TTL, [("taken_over", 1, B)]),
        (60.0, 90.0, []),
        (90.0, 90.0, []),  # its last check may have been right before the request's commit
        (90.0 + MAX_COMMIT_DELAY - 0.1, 90.0, []),
        (90.0 + MAX_COMMIT_DELAY, 90.0, [("taken_over", 1, B)]),
    ],
)
def test_nobody_takes_over_before_the_owner_would_have_stopped_by_itself(
    ago: float, ttl: float, expected: list[tuple[str, int, int | None]]
) -> None:
    owner = Member(A, "A", is_draining=True, ttl=ttl)
    assert planned([queue(cur=A, req=B, requested_ago=ago)], [owner, worker(B)]) == expected


def test_who_leaves_gives_everything_at_once_and_gets_nothing() -> None:
    queues = [queue(1, A), queue(2, A, B, **asked), queue(3, B, A, **asked), queue(4)]
    assert planned(queues, [ALIVE, worker(B)], leaving=[A]) == [
        ("assigned", 1, B),
        ("assigned", 2, B),
        ("cancelled", 3, B),
        ("assigned", 4, B),
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_everything_is_in_place_nothing_changes(strategy: str) -> None:
    queues = [queue(1, A), queue(2, B), queue(3, A), queue(4, B)]
    assert planned(queues, [ALIVE, worker(B)], strategy=strategy) == []


@pytest.mark.parametrize(
    ("one", "workers", "is_in_doubt", "expected"),
    [
        (queue(cur=A, req=B), [ALIVE, worker(B)], False, [("handed_over", B)]),
        (queue(cur=A, req=B), [ALIVE, worker(B, is_alive=False)], False, [("cancelled", None)]),
        (queue(cur=A, req=B), [ALIVE, worker(B, is_draining=True)], False, [("cancelled", None)]),
        (queue(cur=A, req=B), [ALIVE], False, [("cancelled", None)]),
        (queue(cur=A), [ALIVE], False, []),
        (queue(cur=A, **EU, **asked), [ALIVE], False, [("unassigned", None)]),
        (queue(cur=A), [ALIVE], True, [("unassigned", None)]),
        (queue(cur=A, req=B), [ALIVE], True, [("unassigned", None)]),
        (queue(cur=A, req=B), [ALIVE, worker(B)], True, [("handed_over", B)]),
        (queue(cur=A, is_retiring=True), [ALIVE], False, [("removed", None)]),
    ],
)
def test_what_becomes_of_a_queue_whose_owner_has_done_its_work(
    one: QueueSnapshot, workers: list[Member], is_in_doubt: bool, expected: list[tuple[str, int | None]]
) -> None:
    found = hand_over([one], workers, [one.pk] if is_in_doubt else [])
    assert [(str(change.what), change.to) for change in found] == expected


def test_what_a_server_has_and_may_not_have_any_more_takes_room_until_it_is_given_up() -> None:
    mine = [queue(pk, A, **EU) for pk in range(1, 5)]
    free = [queue(pk) for pk in range(5, 9)]
    assert planned([*mine, *free], [worker(A, limit=4)]) == [("requested", pk, None) for pk in range(1, 5)]
    assert planned([*mine[:3], *free], [worker(A, limit=4)])[3:] == [("assigned", 5, A)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_stays_with_a_server_because_nobody_else_has_room_takes_room(strategy: str) -> None:
    queues = [queue(1), queue(2, A, **EU)]
    workers = [worker(A, limit=1, labels={"zone": "eu"})]
    assert planned(queues, workers, strategy=strategy) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_pinned_to_a_full_server_goes_to_any_other_and_says_so(strategy: str) -> None:
    queues = [queue(pk, pin="A") for pk in range(1, 5)]
    found = plan(queues, [worker(A, limit=2), worker(B)], STRATEGIES[strategy], DRAIN)
    assert [(change.to, change.reason) for change in found] == [
        *[(A, "it had no owner")] * 2,
        *[(B, "pinned to A, which has no room")] * 2,
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_went_elsewhere_because_its_server_was_full_stays_there(strategy: str) -> None:
    queues = [queue(1, A, pin="A"), queue(2, B, pin="A"), queue(3, A, pin="A"), queue(4, B, pin="A")]
    sticky = [queue(pk, owner, pin="A") for pk, owner in enumerate((A, A, B, B), 1)]
    there = queues if strategy == "sticky" else sticky
    assert planned(there, [worker(A, limit=2), worker(B)], strategy=strategy) == []


def test_what_is_pinned_comes_back_when_there_is_room() -> None:
    queues = [queue(1, A, pin="A"), queue(2, B, pin="A")]
    assert planned(queues, [worker(A), worker(B)]) == [("requested", 2, A)]


def test_a_pin_is_given_room_by_what_may_go_elsewhere() -> None:
    queues = [queue(1, A), queue(2, A), queue(3, pin="A"), queue(4, pin="A")]
    assert planned(queues, [worker(A, limit=2), worker(B)]) == [
        ("requested", 1, B),
        ("requested", 2, B),
        ("assigned", 3, A),
        ("assigned", 4, A),
    ]


def test_what_nobody_has_room_for_is_left_free_whatever_it_is_pinned_to() -> None:
    queues = [queue(pk, pin="A") for pk in range(1, 5)]
    found = planned(queues, [worker(A, limit=1), worker(B, limit=1)])
    assert found == [("assigned", 1, A), ("assigned", 2, B)]


REASONS = [
    (queue(), [ALIVE], (), "it had no owner"),
    (queue(cur=A), [DEAD, worker(B)], (), "A #1 presumed dead: no heartbeat for 6 s"),
    (queue(cur=A), [worker(B)], (), "its queue server is gone"),
    (queue(cur=A), [ALIVE, worker(B)], (A,), "A #1 left"),
    (queue(cur=A), [DRAINING, worker(B)], (), "A #1 is draining"),
    (queue(cur=A, pin="B"), [ALIVE, worker(B)], (), "pinned to B"),
    (queue(cur=A, labels={"zone": "eu"}), [ALIVE, worker(B, labels={"zone": "eu"})], (), "A #1 lacks zone=eu"),
    (queue(cur=A, req=B, **late), [DRAINING, worker(B)], (), "A #1 did not finish its work in time"),
    (queue(cur=A, req=B, **asked), [ALIVE], (), "A #1 keeps it"),
    (queue(pin="A"), [worker(A, limit=0), worker(B)], (), "pinned to A, which has no room"),
    (queue(cur=A, **EU), [ALIVE], (), "A #1 lacks zone=eu"),
    (queue(cur=A, **EU, **late), [ALIVE], (), "A #1 did not finish its work in time"),
    (queue(is_retiring=True), [ALIVE], (), "it is being removed"),
]


@pytest.mark.parametrize(("one", "workers", "leaving", "reason"), REASONS, ids=[each[-1] for each in REASONS])
def test_every_change_says_why(
    one: QueueSnapshot, workers: list[Member], leaving: tuple[int, ...], reason: str
) -> None:
    assert [change.reason for change in changes_of(one, workers, leaving)] == [reason]


def changes_of(one: QueueSnapshot, workers: list[Member], leaving: tuple[int, ...]) -> list[Change]:
    return plan([one], workers, STRATEGIES["sticky"], DRAIN, leaving=leaving)


def test_a_queue_that_moves_to_even_out_says_how_many_both_had() -> None:
    found = plan([queue(1, A), queue(2, A)], [ALIVE, worker(B)], STRATEGIES["sticky"], DRAIN)
    assert [change.reason for change in found] == ["rebalanced: A #1 had 2, B #2 0"]
