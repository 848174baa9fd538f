"""The status of queue groups, servers and queues."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.exceptions import BadOption
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import administration, reassignment
from resourcepool.queues.planning.assignment import Member, QueueSnapshot
from resourcepool.queues.planning.changes import Change
from resourcepool.status.queues.forecast import QueueCounts, forecast, shares
from resourcepool.status.queues.queue_groups import queue_group, queue_groups
from resourcepool.status.queues.queues import moves, queues_of
from tests.committed import Statement


@pytest.fixture
def orders() -> QueueGroup:
    return administration.create("orders", [str(number) for number in range(6)])


def server(made: QueueGroup, name: str = "A", **more: Any) -> Server:
    about = {"ttl": 60, "busy_before": DbLater(45), "registered_at": DbLater(-100), "idle_since": DbLater(-30)}
    found: Server = Server.objects.create(queue_group=made, name=name, fence=1, **{**about, **more})
    return found


def planned(made: QueueGroup) -> None:
    reassignment.reassign("default", made.pk, "the test")


def near(seconds: float) -> Any:
    return pytest.approx(seconds, abs=20)  # a loaded machine is late, and nothing here is closer than that


class TestQueueGroups:
    def test_there_may_be_none(self) -> None:
        assert queue_groups() == []

    def test_settings_and_counts(self, orders: QueueGroup) -> None:
        administration.create("mails", ["x"], handover_timeout=30)
        mails, found = queue_groups()
        assert (mails.name, mails.handover_timeout, mails.queues, mails.unowned) == ("mails", 30, 1, 1)
        assert (found.name, found.strategy, found.is_paused) == ("orders", "sticky", False)
        assert (found.queues, found.unowned, found.unowned_for, found.assigned) == (6, 6, near(0), None)
        assert not found.was_served
        assert [one.name for one in queue_groups(["orders"])] == ["orders"]

    def test_servers_with_what_they_have_give_up_and_await(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        Queue.objects.update(since=DbLater(-500))
        server(orders, "B", labels={"zone": "eu"}, weight=2, limit=9, holder="host/1/x/1")
        planned(orders)
        found = queue_group("orders")
        a, b = found.servers
        assert (a.queues, a.asked_for, a.awaits, a.idle) == (6, 4, 0, None)
        assert (b.queues, b.asked_for, b.awaits) == (0, 0, 4)
        assert (b.labels, b.weight, b.limit, b.holder) == ({"zone": "eu"}, 2, 9, "host/1/x/1")
        assert (b.heartbeat, b.registered, b.idle) == (near(15), near(100), near(30))
        assert (found.asked_for, found.unowned, found.generation) == (4, 0, 2)
        assert found.assigned_by == "the test"
        assert found.assigned == near(0)
        assert a.longest_asked == near(0)

    def test_what_a_dead_a_missing_and_no_server_has_is_nobodys(self, orders: QueueGroup) -> None:
        dead = server(orders, busy_before=DbLater(-1_000))
        alive = server(orders, "B")
        owners = {"0": dead.pk, "1": dead.pk + 1_000, "2": None, "3": alive.pk, "4": alive.pk, "5": alive.pk}
        for queue_id, owner in owners.items():
            Queue.objects.filter(queue_id=queue_id).update(cur_server=owner, since=DbLater(-500))
        found = queue_group("orders")
        assert found.unowned == 3
        assert found.unowned_for == near(1_060)
        assert [one.is_alive for one in found.servers] == [False, True]
        standing = {one.queue_id: (one.owner, one.is_owned) for one in queues_of(found)}
        assert standing["0"] == (f"A #{dead.pk}", False)
        assert standing["1"] == (f"#{dead.pk + 1_000}", False)
        assert standing["2"] == ("", False)
        assert standing["3"] == (f"B #{alive.pk}", True)

    def test_a_queue_that_nobody_ever_had_waits_since_it_was_added(self, orders: QueueGroup) -> None:
        server(orders, labels={"zone": "us"}, registered_at=DbLater(-5_000))
        Queue.objects.update(labels={"zone": "eu"})
        planned(orders)
        found = queue_group("orders")
        assert (found.unowned, found.unowned_for) == (6, near(0))
        Queue.objects.filter(queue_id="3").update(since=DbLater(-700))
        assert queue_group("orders").unowned_for == near(700)

    def test_one_of_those_that_nobody_has_is_named_with_the_reason(self, orders: QueueGroup) -> None:
        server(orders, labels={"zone": "us"})
        Queue.objects.filter(queue_id__in=["2", "3"]).update(labels={"zone": "eu"})
        planned(orders)
        found = queue_group("orders")
        assert (found.unowned_one, found.unowned_why) == ("2", "no living server has zone=eu")

    def test_an_unknown_one_is_refused_with_those_that_exist(self, orders: QueueGroup) -> None:
        with pytest.raises(BadOption, match="one of orders"):
            queue_group("mails")

    def test_as_many_statements_however_many_there_are(
        self, orders: QueueGroup, statements: list[Statement]
    ) -> None:
        queue_groups()
        few = len(statements)
        for number in range(5):
            made = administration.create(f"t{number}", [str(one) for one in range(300)])
            for one in range(10):
                server(made, f"s{one}")
            planned(made)
        statements.clear()
        assert sum(len(one.servers) for one in queue_groups()) == 50
        assert len(statements) == few <= 5


class TestQueues:
    def test_the_first_ones_in_the_order_in_which_they_were_added(self, orders: QueueGroup) -> None:
        found = queue_group("orders")
        assert [one.queue_id for one in queues_of(found, limit=4)] == ["0", "1", "2", "3"]
        assert [one.queue_id for one in queues_of(found)] == ["0", "1", "2", "3", "4", "5"]

    def test_what_one_server_has_and_awaits(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        b = server(orders, "B")
        planned(orders)
        found = queue_group("orders")
        mine = [one for one in queues_of(found) if b.pk in (one.owner_pk, one.requester_pk)]
        assert [one.queue_id for one in mine] == ["3", "4", "5"]
        assert {one.requester for one in mine} == {f"B #{b.pk}"}
        assert all(one.asked_for is not None for one in mine)
        assert mine[0].fence == Queue.objects.get(pk=mine[0].pk).fence
        assert mine[0].since == near(0)

    def test_all_that_is_known_of_one(self) -> None:
        administration.create("mails", ["x"], parameter="p", labels={"zone": "eu"})
        administration.pin("mails", ["x"], "A")
        (found,) = queues_of(queue_group("mails"))
        assert (found.parameter, found.labels, found.pin) == ("p", {"zone": "eu"}, "A")
        assert (found.owner, found.requester, found.since, found.is_retiring) == ("", "", near(0), False)


class TestMoves:
    def test_the_last_ones_first(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        server(orders, "B")
        planned(orders)
        found = moves("orders", limit=4)
        assert [(one.generation, one.queue_id) for one in found] == [(2, "5"), (2, "4"), (2, "3"), (1, "5")]
        assert found[0].what is Move.Action.REQUESTED
        assert found[0].from_server.startswith("A #")
        assert found[0].ago == near(0)
        assert moves("mails") == []

    def test_of_all_queue_groups(self, orders: QueueGroup) -> None:
        for name in ("orders", "mails"):
            about = {"generation": 1, "queue_pk": 1, "queue_id": "1", "what": "assigned", "fence": 1}
            Move.objects.create(queue_group=name, at=DbNow(), **about)
        assert [one.queue_group for one in moves()] == ["mails", "orders"]

    @pytest.mark.only("mysql")
    def test_are_found_by_index_and_nothing_is_sorted(self, orders: QueueGroup) -> None:
        rows = Move.objects.filter(queue_group="orders").order_by("-generation", "-queue_pk")[:20]
        plan = rows.explain()
        assert "resourcepool_move_latest" in plan
        assert "filesort" not in plan
        assert connection.vendor == "mysql"


class TestForecast:
    def test_changes_nothing_and_names_who_is_not_there_yet(self, orders: QueueGroup) -> None:
        a = server(orders)
        planned(orders)
        found = forecast("orders", joining=[Member(-1, "C"), Member(-2, "C", 2)])
        assert {one.to_server for one in found.changes} == {"C (new)"}
        assert not any("#-" in one.reason for one in found.changes)
        assert [(one.server, one.before) for one in found.shares] == [
            (f"A #{a.pk}", 6),
            ("C (new)", 0),
            ("C (new)", 0),
        ]
        assert sum(one.after for one in found.shares) == found.queues == 6
        assert Move.objects.count() == 6

    @pytest.mark.parametrize(
        ("queue", "what", "to", "after"),
        [
            ({"cur": 1}, None, None, (1, 0, 0)),
            ({"cur": 1, "req": 2}, None, None, (0, 1, 0)),
            ({"cur": 1}, Move.Action.REQUESTED, 2, (0, 1, 0)),
            ({"cur": 1, "req": 2}, Move.Action.CANCELLED, None, (1, 0, 0)),
            ({"cur": 1, "req": 2}, Move.Action.TAKEN_OVER, 2, (0, 1, 0)),
            ({"cur": 1}, Move.Action.UNASSIGNED, None, (0, 0, 1)),
            ({"cur": 1, "is_retiring": True}, None, None, (0, 0, 0)),
            ({"cur": 1, "is_retiring": True}, Move.Action.REMOVED, None, (0, 0, 0)),
        ],
    )
    def test_where_a_queue_ends_up(self, queue: Any, what: Any, to: Any, after: tuple[int, int, int]) -> None:
        standing = QueueSnapshot(7, "7", **queue)
        changes = [Change(standing, what, to, "")] if what else []
        found = shares([standing], changes, [Member(1, "A"), Member(2, "B")])
        expected = [QueueCounts("A #1", 1, after[0]), QueueCounts("B #2", 0, after[1])]
        assert found == expected + ([QueueCounts("", 0, after[2])] if after[2] else [])
