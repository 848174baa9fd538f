"""The server did what it was asked, and the answer got lost: nobody knows, and nothing is done twice."""

from collections.abc import Iterator

import pytest

from resourcepool.models import Server
from tests.app.models import Team
from tests.concurrency.wire import Wire, wired
from tests.queues.crew import COMMIT, dies, handles, joined, made, moves, queue, replan, table

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("transactional_db")]


@pytest.fixture
def wire(transactional_db: None) -> Iterator[Wire]:
    with wired() as (wire, _):
        Team.objects.count()  # connects
        yield wire


def test_a_server_registers_once(wire: Wire) -> None:
    made(4)
    before = queue("1").fence
    wire.cut_after(COMMIT)
    a = joined("A")
    a.turn()
    assert wire.cuts == 1
    assert Server.objects.count() == 1
    assert len(handles(a)) == 4
    assert {one.fence for one in a.held} == {before + 1}


def test_a_plan_moves_every_queue_once(wire: Wire) -> None:
    made(4)
    a, b = joined("A"), joined("B")
    a.turn()
    dies(Server.objects.get(pk=a.lease.pk))
    wire.cut_after(COMMIT)
    replan(if_due=True)
    assert wire.cuts == 1
    assert table() == "B B B B"
    assert len(moves("assigned")) == 4 + 2  # A had handed over two
    b.turn()
    assert len(handles(b)) == 4


def test_a_hand_over_happens_once_and_the_giver_knows(wire: Wire) -> None:
    made(2)
    a = joined("A")
    a.turn()
    given, before = a.held, {one.queue_id: one.fence for one in a.held}
    b = joined("B")
    assert sorted(table().split()) == ["A", "A>B"]
    wire.cut_after(COMMIT)
    a.turn()
    b.turn()
    assert wire.cuts == 1
    assert sorted(table().split()) == ["A", "B"]
    assert len(moves("handed_over")) == 1
    assert sorted(one.is_held for one in given) == [False, True]
    assert [queue(name).fence - before[name] for name in handles(b)] == [1]


def test_a_server_leaves_once(wire: Wire) -> None:
    made(2)
    a, _ = joined("A"), joined("B")
    a.turn()
    wire.cut_after(COMMIT)
    a.leave()
    assert wire.cuts == 1
    assert table() == "B B"
    assert Server.objects.count() == 1
