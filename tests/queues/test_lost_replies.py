"""The database carried out a statement and the reply was lost: no change is made twice."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import QueueServer, administration
from tests.concurrency.connection_cutter import Wire
from tests.queues.members import (
    COMMIT,
    NAME,
    SETTINGS,
    create_queue_group,
    expire,
    foreign_server,
    handles,
    join,
    moves,
    owners,
    queue,
    read_queue_group,
    replan,
)

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("transactional_db")]


def test_a_server_registers_once(wire: Wire) -> None:
    create_queue_group(4)
    before = queue("1").fence
    wire.cut_after(COMMIT)
    a = join("A")
    a.turn()
    assert wire.cuts == 1
    assert Server.objects.count() == 1
    assert len(handles(a)) == 4
    assert {one.fence for one in a.held} == {before + 1}


def test_a_server_starts_though_what_its_queue_group_is_has_to_be_asked_twice(wire: Wire) -> None:
    """Otherwise the lost session would stay the connection's, and each later start would fail, too."""
    create_queue_group(1)
    wire.cut_after(QueueGroup._meta.db_table)
    with QueueServer(NAME, name="A"):
        assert Server.objects.count() == 1
    assert wire.cuts == 1


def test_a_plan_moves_every_queue_once(wire: Wire) -> None:
    create_queue_group(4)
    a, b = join("A"), join("B")
    a.turn()
    expire(Server.objects.get(pk=a.lease.pk))
    wire.cut_after(COMMIT)
    replan(if_due=True)
    assert wire.cuts == 1
    assert owners() == "B B B B"
    assert len(moves("assigned")) == 4 + 2  # A had handed over two
    b.turn()
    assert len(handles(b)) == 4


def test_a_server_leaves_once(wire: Wire) -> None:
    create_queue_group(2)
    a, _ = join("A"), join("B")
    a.turn()
    wire.cut_after(COMMIT)
    a.leave()
    assert wire.cuts == 1
    assert owners() == "B B"
    assert Server.objects.count() == 1


ORDERS: dict[str, Callable[[], object]] = {
    "create": lambda: administration.create("mails", ["x", "y"], **SETTINGS).pk and 1,
    "add_queues": lambda: administration.add_queues(NAME, ["x", "y"]),
    "change_queues": lambda: administration.change_queues(NAME, ["1"], parameter="p"),
    "remove_queues": lambda: administration.remove_queues(NAME, ["free", "1"]),
    "pin": lambda: administration.pin(NAME, ["1", "2"], "B"),
    "drain": lambda: len(administration.drain(NAME, "A")),
    "undrain": lambda: len(administration.undrain(NAME, "C")),
    "pause": lambda: administration.pause(NAME),
    "resume": lambda: administration.resume(NAME),
}


def test_every_order_of_an_operator_is_tried() -> None:
    ours = {
        name: each
        for name, each in vars(administration).items()
        if inspect.isfunction(each)
        and each.__module__.startswith(administration.__name__)
        and not name.startswith("_")
    }
    orders = {name for name, each in ours.items() if "by" in inspect.signature(each).parameters}
    assert orders | {"create"} == set(ORDERS)


@pytest.mark.parametrize("name", ORDERS)
def test_what_an_operator_orders_is_done_once_and_said_to_be_done(wire: Wire, name: str) -> None:
    wished = outcome(ORDERS[name], lost=None)
    empty()
    assert outcome(ORDERS[name], lost=wire) == wished


def outcome(order: Callable[[], object], lost: Wire | None) -> list[Any]:
    """Return the result of an order on fresh rows: the answer, the owners, the moves."""
    create_queue_group(4)
    foreign_server("A")
    foreign_server("B")
    foreign_server("C", state="draining")
    administration.add_queues(NAME, ["free"], labels={"zone": "mars"})
    if lost is not None:
        lost.cut_after(COMMIT)
    answer = order()
    assert lost is None or lost.cuts == 1
    known = [re.sub(r"#\d+", "#", each) for each in moves()]
    rows = Queue.objects.order_by("pk").values_list("queue_id", "parameter", "pin", "is_retiring")
    return [answer, owners(), known, list(rows), read_queue_group().is_paused]


def empty() -> None:
    for model in (Queue, Server, QueueGroup, Move):
        model.objects.all().delete()
