"""``resourcepool_queues``: forecasts and changes."""

import io
import re

import pytest

from resourcepool.management import queues_report as report
from resourcepool.management.layout import console, render_text
from resourcepool.models import Move, Queue, QueueGroup, Server
from resourcepool.queues import administration
from resourcepool.queues.queries import expand_ids
from resourcepool.status.queues.queues import MoveRecord
from tests.management.queues import planned, queues, server

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestPlan:
    def test_lists_what_would_move_and_why_and_changes_nothing(self, orders: QueueGroup) -> None:
        a, b = server(orders), server(orders, "B")
        planned(orders)
        before = list(Queue.objects.values())
        shown = queues("plan", "orders", "--without", "B", "--with", "C:3").out
        rows = [line.split() for line in shown.splitlines()]
        assert ["server", "has", "would", "have"] in rows
        assert ["A", f"#{a.pk}", "4", "2"] in rows
        assert ["B", f"#{b.pk}", "4", "0"] in rows
        assert ["C", "(new)", "0", "6"] in rows
        assert f"B #{b.pk} left" in shown
        assert "rebalanced: " in shown
        assert shown.endswith("6 of 8 queues would move. Nothing was changed.\n")
        assert list(Queue.objects.values()) == before
        assert Move.objects.count() == 8

    def test_one_of_two_with_the_same_name(self, orders: QueueGroup) -> None:
        server(orders)
        second = server(orders)
        planned(orders)
        assert "4 of 8 queues would move" in queues("plan", "orders", "--without", f"A #{second.pk}").out
        assert "8 of 8 queues would move" in queues("plan", "orders", "--without", "A").out

    def test_labels_of_who_would_join(self, orders: QueueGroup) -> None:
        administration.add_queues("orders", ["eu"], labels={"zone": "eu"})
        assert "8 of 9 queues would move" in queues("plan", "orders", "--with", "C").out
        assert "9 of 9 queues would move" in queues("plan", "orders", "--with", "C", "--labels", "zone=eu").out

    def test_a_server_that_leaves_and_one_of_its_name_that_comes(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        shown = queues("plan", "orders", "--without", "A", "--with", "A").out
        assert re.search(r"A \(new\) +0 +8", shown)
        refused = queues("plan", "orders", "--without", "C", "--with", "C")
        assert "server='C' is not allowed: it must be one of A" in refused.err

    def test_a_removal_and_a_drain_may_be_tried_first(self, orders: QueueGroup) -> None:
        a, b = server(orders), server(orders, "B")
        planned(orders)
        before = [list(model.objects.order_by("pk").values()) for model in (QueueGroup, Queue, Server, Move)]
        shown = queues("drain", "orders", "A", "--dry-run").out
        assert f"A #{a.pk} is draining" in shown
        assert re.search(rf"B #{b.pk} +4 +8\n", shown)
        shown = queues("remove", "orders", "0..1", "--dry-run").out
        assert "it is being removed" in shown
        assert re.search(rf"A #{a.pk} +4 +3\n", shown)
        assert "Nothing was changed." in shown
        assert "no such queue" in queues("remove", "orders", "99", "--dry-run").err
        after = [list(model.objects.order_by("pk").values()) for model in (QueueGroup, Queue, Server, Move)]
        assert after == before

    def test_when_nothing_would(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        assert queues("plan", "orders").out.endswith("0 of 8 queues would move. Nothing was changed.\n")

    def test_as_json(self, orders: QueueGroup) -> None:
        server(orders)
        planned(orders)
        found = queues("plan", "orders", "--with", "C", "--json", "--limit", 2).json
        assert len(found["changes"]) == 2
        assert (found["changes_total"], found["queues"]) == (4, 8)
        assert found["shares"][-1] == {"server": "C (new)", "before": 0, "after": 4}


class TestChanges:
    def test_give_queues_a_parameter_and_labels(self, orders: QueueGroup) -> None:
        said = queues("change", "orders", "0..1", "--parameter", "p", "--label", "zone=eu").out
        assert said == "Changed queues: 2.\n"
        found = Queue.objects.order_by("pk").values_list("parameter", "labels")
        assert list(found[:3]) == [("p", {"zone": "eu"}), ("p", {"zone": "eu"}), ("", {})]
        queues("change", "orders", "0", "--no-label")
        assert list(found[:1]) == [("p", {})]
        assert "add --parameter, --label or --no-label" in queues("change", "orders", "0").err

    def test_a_new_queue_group_with_its_queues_and_settings(self) -> None:
        about = ["--heartbeat", "2s", "--judge-dead", "20", "--handover-timeout", "2m", "--reload", "0.5"]
        assert queues("add", "mails", "0..3", "x", "--new", *about, "--strategy", "round_robin").code == 0
        made = QueueGroup.objects.get()
        assert (made.heartbeat_every, made.judge_dead_after, made.reload_every) == (2, 20, 0.5)
        assert (made.handover_timeout, made.strategy) == (120, "round_robin")
        assert list(Queue.objects.values_list("queue_id", flat=True).order_by("pk")) == [
            "0",
            "1",
            "2",
            "3",
            "x",
        ]

    def test_queues_with_a_parameter_and_labels_whether_the_queue_group_is_new_or_not(self) -> None:
        about = ["--parameter", "p", "--label", "zone=eu", "--label", "disk=ssd"]
        assert queues("add", "mails", "1", "--new", *about).out == "Added queues: 1.\n"
        assert queues("add", "mails", "2..3", *about).out == "Added queues: 2.\n"
        for queue in Queue.objects.all():
            assert (queue.parameter, queue.labels) == ("p", {"zone": "eu", "disk": "ssd"})

    def test_a_drain_that_leaves_queues_where_they_are_says_so(self, orders: QueueGroup) -> None:
        a = server(orders)
        planned(orders)
        stay = f"queues that stay on draining servers: 8, for example queue 0 on A #{a.pk}: no other server is running."
        assert queues("drain", "orders", "A").out.startswith(f"1 is draining: A #{a.pk}.\n{stay}")
        told = queues("drain", "orders", "A", "--json").json
        assert told["changed"] == 0  # it was draining before
        assert [text.startswith(stay) for text in told["warnings"]] == [True]
        assert stay in queues("show", "orders").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(
            ([*words.split()], "queue_group='mails' is not allowed: it must be one of orders; ")
            for words in ("show mails", "plan mails", "add mails 1", "drain mails A", "pause mails")
        ),
        (
            ["add", "orders", "x", "--new"],
            "queue_group='orders' is not allowed: this name is already in use",
        ),
        (["add", "orders", "3"], "queue=['3'] is not allowed: already exists in orders"),
        (["add", "orders", "a", "a"], "queue=['a'] is not allowed: each queue once"),
        (["add", "orders", "a" * 101], "one line of text, 1 to 100 printable characters"),
        (["add", "orders", "9..3"], "queue='9..3' is not allowed: it must be an ascending range"),
        (["add", "orders", "0..10000"], "at most 10000 at once"),
        (["add", "orders", "0..9998", "x", "y"], "at most 10000 at once"),
        (["add", "orders", "a", "--label", "eu"], "--label='eu' is not allowed: it must be KEY=VALUE"),
        (["add", "orders", "a", "--parameter", "p" * 2_001], "text of at most 2000 characters"),
        (["add", "orders", "a", "--heartbeat", "2s"], "--heartbeat=2.0 is not allowed: only with --new"),
        (["add", "orders", "a", "--strategy", "sticky"], "--strategy='sticky' is not allowed: only with --new"),
        (
            ["add", "mails", "a", "--new", "--heartbeat", "4s", "--judge-dead", "7s"],
            "--judge-dead=7.0 is not allowed: At least two heartbeats (8 s): one may be late.",
        ),
        (
            ["add", "mails", "a", "--new", "--handover-timeout", "1s"],
            "--handover-timeout=1.0 is not allowed: At least the time after which a server is presumed dead (6 s).",
        ),
        (["add", "mails", "a", "--new", "--heartbeat", "soon"], "'soon' is not a duration"),
        (["add", "mails", "a", "--new", "--label", "x"], "KEY=VALUE"),
        (["remove", "orders", "0", "99", "98"], "queue=['99', '98'] is not allowed: orders has no such queues"),
        (["pin", "orders", "99", "--to", "A"], "queue=['99'] is not allowed: orders has no such queue"),
        (["pin", "orders", "1", "--to", ""], "--to='' is not allowed: it must be a server's name"),
        (["show", "orders", "1", "99"], "queue=['99'] is not allowed: orders has no such queue"),
        (["add", "orders", "eu-0..eu-3"], "queue=['eu-0..eu-3'] is not allowed: no \"..\" in an id"),
        (["unpin", "orders", "99"], "queue=['99'] is not allowed: orders has no such queue"),
        (["drain", "orders", "B"], "server='B' is not allowed: it must be one of A"),
        (["undrain", "orders", "A #0"], "server='A #0' is not allowed: it must be one of A"),
        (["plan", "orders", "--without", "B"], "server='B' is not allowed: it must be one of A"),
        (["plan", "orders", "--with", "B:x"], "--with='B:x' is not allowed: it must be NAME or NAME:WEIGHT"),
        (
            ["plan", "orders", "--with", "B:0"],
            "--with=0 is not allowed: it must be a whole number from 1 to 1000",
        ),
        (
            ["plan", "orders", "--with", "B", "--labels", "x"],
            "--labels='x' is not allowed: it must be KEY=VALUE",
        ),
        (["show", "--watch", "0"], "--watch=0.0 is not allowed"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(orders: QueueGroup, words: list[str], said: str) -> None:
    server(orders)
    planned(orders)
    before = [list(model.objects.order_by("pk").values()) for model in (QueueGroup, Queue, Server, Move)]
    refused = queues(*words)
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert refused.out == ""
    assert refused.code == 1
    assert [
        list(model.objects.order_by("pk").values()) for model in (QueueGroup, Queue, Server, Move)
    ] == before


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], []),
        (["7"], ["7"]),
        (["0", "1", "2", "5", "6", "9"], ["0..2", "5..6", "9"]),
        (["a", "b", "1"], ["a", "b", "1"]),
        (["eu-0", "eu-1", "us-2", "us-3"], ["eu-0..1", "us-2..3"]),
        (["08", "09", "10"], ["08..9", "10"]),
        (["3", "2", "1"], ["3", "2", "1"]),
        (["1", "x", "2"], ["1", "x", "2"]),
    ],
)
def test_queues_that_follow_each_other_are_shown_as_they_may_be_typed(
    ids: list[str], expected: list[str]
) -> None:
    shown = list(report.ranges(ids))
    assert shown == expected
    assert expand_ids(shown) == ids


def test_no_queue_is_left_out_of_a_long_list_of_moves() -> None:
    moved = [
        MoveRecord("orders", 1, str(number), Move.Action.ASSIGNED, "", "A #1", 1, "it had no owner", 3.0)
        for number in range(0, 400, 2)
    ]
    lines = render_text(console(io.StringIO()), [report.moves_as_text(moved, 100)]).split("\n")[1:]
    assert len(lines) > 5
    shown = " ".join(lines).replace(",", " ").split()
    assert set(shown) >= {str(number) for number in range(0, 400, 2)}
