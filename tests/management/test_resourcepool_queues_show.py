"""``resourcepool_queues show``."""

import re

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Queue, QueueGroup, Server
from resourcepool.queues import administration
from tests.committed import Statement
from tests.management.queues import planned, queues, server

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestShow:
    def test_says_what_to_type_when_there_is_nothing(self) -> None:
        command = "manage.py resourcepool_queues add <queue group> <queue> .. --new"
        said = f"No queue groups yet; create one with `{command}`.\n"
        assert queues().out == queues("show").out == said

    def test_has_a_line_for_each_queue_group(self, orders: QueueGroup) -> None:
        administration.create("mails", ["x"])
        server(orders)
        planned(orders)
        head, mails, line = queues().out.splitlines()
        names = "queue group, queues, servers, requested, unowned, generation, last change"
        assert re.split("  +", head) == names.split(", ")
        assert mails.split() == ["mails", "1", "0", "0", "1", "0", "never"]
        assert line.split()[:6] == ["orders", "8", "1", "0", "0", "1"]

    def test_maps_servers_and_queues_and_tells_the_moves_and_why(self, orders: QueueGroup) -> None:
        a = server(orders)
        planned(orders)
        b = server(orders, "B", labels={"zone": "eu"}, limit=3, weight=2)
        planned(orders)
        lines = queues("show", "orders").out.splitlines()
        server_map = [" ".join(line.split()) for line in lines]
        assert f"A #{a.pk} 0..4; hands over 5..7" in server_map
        assert f"B #{b.pk} awaits 5..7" in server_map
        (row,) = [line.split() for line in lines if re.match(rf"B #{b.pk} +up", line)]
        assert row[3:9] == ["0", "0", "3", "2", "3", "zone=eu"]
        steps = [line.split() for line in lines if "requested " in line and "rebalanced" in line]
        assert len(steps) == 1
        assert steps[0][4] == "5..7"

    def test_tells_who_died_and_what_is_wrong(self, orders: QueueGroup) -> None:
        dead = server(orders)
        planned(orders)
        Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-60))
        shown = queues("show", "orders").out
        assert re.search(rf"^A #{dead.pk} +presumed dead +8 ", shown, re.MULTILINE)
        assert "Alarms:\n  [unowned] queues: orders: no server is running; unowned queues: 8, " in shown

    def test_shows_that_it_is_paused(self, orders: QueueGroup) -> None:
        assert queues("pause", "orders").out == "Queue group orders was paused.\n"
        assert "PAUSED" in queues("show", "orders").out
        assert queues("resume", "orders").out == "Queue group orders was resumed.\n"
        assert "PAUSED" not in queues("show", "orders").out

    def test_as_json(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        found = queues("show", "orders", "--json", "--limit", 3).json
        assert found.keys() == {"queue_groups", "queues", "moves", "alarms"}
        assert [one["queues"] for one in found["queue_groups"][0]["servers"]] == [8]
        assert len(found["queues"]) == 8
        assert [one["queue_id"] for one in found["moves"]] == ["7", "6", "5"]
        assert queues("show", "--json").json.keys() == {"queue_groups", "alarms"}

    def test_asks_as_often_however_many_there_are(
        self, orders: QueueGroup, statements: list[Statement]
    ) -> None:
        server(orders)
        planned(orders)
        statements.clear()
        queues("show", "orders")
        few = len(statements)
        administration.add_queues("orders", [f"more-{number}" for number in range(500)])
        for number in range(20):
            server(orders, f"B{number}")
        planned(orders)
        statements.clear()
        queues("show", "orders")
        assert len(statements) == few <= 9


class TestShowingQueues:
    def test_tells_all_of_each_and_its_moves(self, orders: QueueGroup) -> None:
        a = server(orders)
        planned(orders)
        b = server(orders, "B")
        planned(orders)
        administration.pin("orders", ["7"], "B")
        shown = queues("show", "orders", "7").out
        assert re.search(
            rf"orders 7\n  server: A #{a.pk}, for \d+ s\n  requested by: B #{b.pk}, for \d+ s\n", shown
        )
        fence = Queue.objects.get(queue_id="7").fence
        assert f"  pinned to: B\n  required labels: -\n  fence: {fence}\n" in shown
        assert (
            len(
                [
                    line
                    for line in shown.splitlines()
                    if re.match(r" *\d+ .* (it had no owner|rebalanced)", line)
                ]
            )
            == 2
        )

    def test_tells_why_nobody_has_one(self, orders: QueueGroup) -> None:
        assert "  why unowned: no server is running\n" in queues("show", "orders", "7").out
        server(orders)
        administration.add_queues("orders", ["x"], labels={"zone": "mars"})
        shown = queues("show", "orders", "x")
        assert re.search(
            r"  server: none, for \d+ s\n  why unowned: no living server has zone=mars\n", shown.out
        )

    def test_of_a_dead_server(self, orders: QueueGroup) -> None:
        dead = server(orders)
        planned(orders)
        Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-60))
        shown = queues("show", "orders", "0..1").out
        assert shown.count(f"  server: A #{dead.pk} (presumed dead), for ") == 2

    def test_as_json(self, orders: QueueGroup) -> None:
        planned(orders)
        found = queues("show", "orders", "3..4", "--json").json
        assert [one["queue_id"] for one in found["queues"]] == ["3", "4"]
        assert found["queues"][0]["why_unowned"] == "no server is running"

    def test_without_a_parameter(self) -> None:
        administration.create("mails", ["x"], parameter="a secret, against all advice")
        assert "secret" not in queues("show", "mails", "x").out

    def test_a_map_that_is_cut_says_how_to_see_the_rest(self) -> None:
        made = administration.create("mails", [str(number) for number in range(0, 60, 2)])
        server(made)
        planned(made)
        assert ", 38, and 10 more (--limit 30)" in queues("show", "mails").out
        assert ", 56, 58\n" in queues("show", "mails", "--limit", 30).out
