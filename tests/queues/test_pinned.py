"""A pin is a wish: its server gets the queue while it has room, and any other when it has none."""

import pytest

from resourcepool.queues import administration
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.status.queues.queue_groups import queue_group
from resourcepool.status.queues.queues import queues_named
from tests.queues.members import NAME, create_queue_group, foreign_server, moves, owners

FOUR = ["1", "2", "3", "4"]
FULL = "pinned to A, which has no room; every server that may have it has as many queues as its limit allows"


@pytest.fixture(params=sorted(STRATEGIES), autouse=True)
def pinned(request: pytest.FixtureRequest, transactional_db: None) -> None:
    """Four queues that are pinned to A, which may have two."""
    create_queue_group(4, strategy=request.param)
    administration.pin(NAME, FOUR, "A")
    foreign_server("A", limit=2)


def test_what_its_server_has_no_room_for_goes_to_any_other_which_its_move_says() -> None:
    foreign_server("B")
    assert sorted(owners().split()) == ["A", "A", "B", "B"]
    assert [each.partition(": ")[2] for each in moves()[2:]] == ["pinned to A, which has no room"] * 2


def test_what_nobody_has_room_for_says_so_and_names_the_pin_wherever_one_looks() -> None:
    foreign_server("B", limit=1)
    (nobody,) = [queue for queue in queues_named(queue_group(NAME), FOUR) if queue.owner_pk is None]
    assert nobody.why_unowned == FULL
    assert queue_group(NAME).unowned_why == FULL
