"""Which server has which queue, and what operators change, from a shell."""

import re
import threading
from typing import Any

import pytest

from resourcepool.dialect import DbLater, DbNow
from resourcepool.management import queues_report as report
from resourcepool.models import Move, Queue, Server, TaskType
from resourcepool.queues import moving, operating
from resourcepool.queues.ids import queue_ids
from resourcepool.stats.moves import Moved
from tests.committed import Statement
from tests.management.operated import Ran, run

pytestmark = pytest.mark.usefixtures("transactional_db")

HOSTILE = "\x1b[31mred\x07"


def queues(*words: Any) -> Ran:
    return run("queues", *words)


def server(made: TaskType, name: str = "A", **more: Any) -> Server:
    """A server that lives, without a process behind it; it gets its queues with the next plan."""
    about = {"ttl": 600, "busy_before": DbLater(600), "registered_at": DbNow(), "idle_since": DbNow()}
    found: Server = Server.objects.create(task_type=made, name=name, fence=1, **{**about, **more})
    return found


def planned(made: TaskType) -> None:
    moving.reassign("default", made.pk, "the test")


@pytest.fixture
def orders() -> TaskType:
    return operating.create("orders", [str(number) for number in range(8)])


class TestShow:
    def test_says_what_to_type_when_there_is_nothing(self) -> None:
        said = "No task type yet; `manage.py resourcepool_queues add <task type> <queue> .. --new` makes one.\n"
        assert queues().out == queues("show").out == said

    def test_has_a_line_for_each_task_type(self, orders: TaskType) -> None:
        operating.create("mails", ["x"])
        server(orders)
        planned(orders)
        head, mails, line = queues().out.splitlines()
        names = "task type, queues, servers, asked for, without a server, generation, last change"
        assert re.split("  +", head) == names.split(", ")
        assert mails.split() == ["mails", "1", "0", "0", "1", "0", "never"]
        assert line.split()[:6] == ["orders", "8", "1", "0", "0", "1"]

    def test_maps_servers_and_queues_and_tells_the_moves_and_why(self, orders: TaskType) -> None:
        a = server(orders)
        planned(orders)
        b = server(orders, "B", labels={"zone": "eu"}, limit=3, weight=2)
        planned(orders)
        lines = queues("show", "orders").out.splitlines()
        assert f"A #{a.pk}  0..4; gives up 5..7" in lines
        assert f"B #{b.pk}  awaits 5..7" in lines
        (row,) = [line.split() for line in lines if re.match(rf"B #{b.pk} +up", line)]
        assert row[3:9] == ["0", "0", "3", "2", "3", "zone=eu"]
        steps = [line.split() for line in lines if "asked for " in line and "evens out" in line]
        assert len(steps) == 1
        assert steps[0][4] == "5..7"

    def test_tells_who_died_and_what_is_wrong(self, orders: TaskType) -> None:
        dead = server(orders)
        planned(orders)
        Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-60))
        shown = queues("show", "orders").out
        assert re.search(rf"^A #{dead.pk} +dead +8 ", shown, re.MULTILINE)
        assert "Problems:\n  queues: orders: nobody works on its 8 queues" in shown

    def test_shows_that_it_is_paused(self, orders: TaskType) -> None:
        assert queues("pause", "orders").out.startswith("Paused: ")
        assert "PAUSED" in queues("show", "orders").out
        assert queues("resume", "orders").out.startswith("Resumed: ")
        assert "PAUSED" not in queues("show", "orders").out

    def test_as_json(self, orders: TaskType) -> None:
        server(orders)
        planned(orders)
        found = queues("show", "orders", "--json", "--limit", 3).json
        assert found.keys() == {"task_types", "queues", "moves", "alarms"}
        assert [one["queues"] for one in found["task_types"][0]["servers"]] == [8]
        assert len(found["queues"]) == 8
        assert [one["queue_id"] for one in found["moves"]] == ["7", "6", "5"]
        assert queues("show", "--json").json.keys() == {"task_types", "alarms"}

    def test_watches_until_ctrl_c(self, orders: TaskType, monkeypatch: pytest.MonkeyPatch) -> None:
        class Pause:
            looks = 0

            def wait(self, seconds: float) -> None:
                assert seconds == 3.0
                Pause.looks += 1
                if Pause.looks == 2:
                    raise KeyboardInterrupt

        monkeypatch.setattr(threading, "Event", Pause)
        shown = queues("show", "orders", "--watch", 3)
        assert shown.out.count("orders: sticky") == 2
        assert shown.code == 0

    def test_what_others_wrote_does_not_speak_to_the_terminal(self) -> None:
        made = TaskType.objects.create(name=HOSTILE, assigned_by=HOSTILE, assigned_at=DbNow())
        server(made, HOSTILE, labels={HOSTILE: HOSTILE}, holder=HOSTILE)
        Queue.objects.create(task_type=made, queue_id=HOSTILE, parameter=HOSTILE, labels={HOSTILE: HOSTILE})
        moved = {"task_type": HOSTILE, "queue_id": HOSTILE, "from_server": HOSTILE, "to_server": HOSTILE}
        Move.objects.create(
            **moved, reason=HOSTILE, generation=1, queue_pk=1, what="assigned", fence=1, at=DbNow()
        )
        said = queues().all + queues("show", HOSTILE).all + queues("plan", HOSTILE, "--with", "x").all
        said += queues("drain", HOSTILE, HOSTILE).all + queues("pause", HOSTILE).all + queues("show", "x").all
        assert "red" in said
        assert said.replace("\n", "").isprintable()

    def test_asks_as_often_however_many_there_are(self, orders: TaskType, statements: list[Statement]) -> None:
        server(orders)
        planned(orders)
        statements.clear()
        queues("show", "orders")
        few = len(statements)
        operating.add_queues("orders", [f"more-{number}" for number in range(500)])
        for number in range(20):
            server(orders, f"B{number}")
        planned(orders)
        statements.clear()
        queues("show", "orders")
        assert len(statements) == few <= 9


class TestShowingQueues:
    def test_tells_all_of_each_and_its_moves(self, orders: TaskType) -> None:
        a = server(orders)
        planned(orders)
        b = server(orders, "B")
        planned(orders)
        operating.pin("orders", ["7"], "B")
        shown = queues("show", "orders", "7").out
        assert re.search(
            rf"orders 7\n  server: A #{a.pk}, for \d+ s\n  asked for by: B #{b.pk}, for \d+ s\n", shown
        )
        assert "  pinned to: B\n  labels it asks for: -\n  fence: 1\n" in shown
        assert (
            len([line for line in shown.splitlines() if re.match(r" *\d+ .* (nobody had it|evens out)", line)])
            == 2
        )

    def test_tells_why_nobody_has_one(self, orders: TaskType) -> None:
        assert "  why nobody: no server is up\n" in queues("show", "orders", "7").out
        server(orders)
        operating.add_queues("orders", ["x"], labels={"zone": "mars"})
        shown = queues("show", "orders", "x")
        assert re.search(
            r"  server: nobody, for \d+ s\n  why nobody: no living server has zone=mars\n", shown.out
        )

    def test_of_a_dead_server(self, orders: TaskType) -> None:
        dead = server(orders)
        planned(orders)
        Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-60))
        shown = queues("show", "orders", "0..1").out
        assert shown.count(f"  server: A #{dead.pk} (dead), for ") == 2

    def test_as_json(self, orders: TaskType) -> None:
        planned(orders)
        found = queues("show", "orders", "3..4", "--json").json
        assert [one["queue_id"] for one in found["queues"]] == ["3", "4"]
        assert found["queues"][0]["why_unowned"] == "no server is up"

    def test_without_a_parameter(self) -> None:
        operating.create("mails", ["x"], parameter="a secret, against all advice")
        assert "secret" not in queues("show", "mails", "x").out

    def test_a_map_that_is_cut_says_how_to_see_the_rest(self) -> None:
        made = operating.create("mails", [str(number) for number in range(0, 60, 2)])
        server(made)
        planned(made)
        assert ", 38, and 10 more (--limit 30)" in queues("show", "mails").out
        assert ", 56, 58\n" in queues("show", "mails", "--limit", 30).out


class TestPlan:
    def test_lists_what_would_move_and_why_and_changes_nothing(self, orders: TaskType) -> None:
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
        assert "evens out: " in shown
        assert shown.endswith("Would move 6 of 8 queues. Nothing was changed.\n")
        assert list(Queue.objects.values()) == before
        assert Move.objects.count() == 8

    def test_one_of_two_with_the_same_name(self, orders: TaskType) -> None:
        server(orders)
        second = server(orders)
        planned(orders)
        assert "Would move 4 of 8" in queues("plan", "orders", "--without", f"A #{second.pk}").out
        assert "Would move 8 of 8" in queues("plan", "orders", "--without", "A").out

    def test_labels_of_who_would_join(self, orders: TaskType) -> None:
        operating.add_queues("orders", ["eu"], labels={"zone": "eu"})
        assert "Would move 8 of 9" in queues("plan", "orders", "--with", "C").out
        assert "Would move 9 of 9" in queues("plan", "orders", "--with", "C", "--labels", "zone=eu").out

    def test_names_what_nobody_would_have_and_why(self, orders: TaskType) -> None:
        operating.add_queues("orders", ["eu-0", "eu-1"], labels={"zone": "eu"})
        a = server(orders)
        planned(orders)
        told = "nobody would have 2 queues: eu-0..1: no living server has zone=eu\n"
        assert told in queues("plan", "orders", "--with", "C").out
        told = "nobody would have 10 queues: 0..4, ...: no server is up\n"
        assert told in queues("plan", "orders", "--without", str(a)).out

    def test_a_server_that_leaves_and_one_of_its_name_that_comes(self, orders: TaskType) -> None:
        server(orders)
        planned(orders)
        shown = queues("plan", "orders", "--without", "A", "--with", "A").out
        assert re.search(r"A \(new\) +0 +8", shown)
        refused = queues("plan", "orders", "--without", "C", "--with", "C")
        assert "server='C' is not allowed: one of A" in refused.err

    def test_a_removal_and_a_drain_may_be_tried_first(self, orders: TaskType) -> None:
        a, b = server(orders), server(orders, "B")
        planned(orders)
        before = [list(model.objects.order_by("pk").values()) for model in (TaskType, Queue, Server, Move)]
        shown = queues("drain", "orders", "A", "--dry-run").out
        assert f"A #{a.pk} is draining" in shown
        assert re.search(rf"B #{b.pk} +4 +8\n", shown)
        shown = queues("remove", "orders", "0..1", "--dry-run").out
        assert "it is being removed" in shown
        assert re.search(rf"A #{a.pk} +4 +3\n", shown)
        assert "Nothing was changed." in shown
        assert "no such queue" in queues("remove", "orders", "99", "--dry-run").err
        after = [list(model.objects.order_by("pk").values()) for model in (TaskType, Queue, Server, Move)]
        assert after == before

    def test_when_nothing_would(self, orders: TaskType) -> None:
        server(orders)
        planned(orders)
        assert queues("plan", "orders").out.endswith("Would move 0 of 8 queues. Nothing was changed.\n")

    def test_as_json(self, orders: TaskType) -> None:
        server(orders)
        planned(orders)
        found = queues("plan", "orders", "--with", "C", "--json", "--limit", 2).json
        assert len(found["changes"]) == 2
        assert (found["changes_total"], found["queues"]) == (4, 8)
        assert found["shares"][-1] == {"server": "C (new)", "before": 0, "after": 4}


class TestChanges:
    def test_a_new_task_type_with_its_queues_and_settings(self) -> None:
        about = ["--heartbeat", "2s", "--judge-dead", "20", "--drain-within", "2m", "--reload", "0.5"]
        assert queues("add", "mails", "0..3", "x", "--new", *about, "--strategy", "round_robin").code == 0
        made = TaskType.objects.get()
        assert (made.heartbeat_every, made.judge_dead_after, made.reload_every) == (2, 20, 0.5)
        assert (made.drain_within, made.strategy) == (120, "round_robin")
        assert list(Queue.objects.values_list("queue_id", flat=True).order_by("pk")) == [
            "0",
            "1",
            "2",
            "3",
            "x",
        ]

    def test_queues_with_a_parameter_and_labels_whether_the_task_type_is_new_or_not(self) -> None:
        about = ["--parameter", "p", "--label", "zone=eu", "--label", "disk=ssd"]
        assert queues("add", "mails", "1", "--new", *about).out == "Added 1 queue.\n"
        assert queues("add", "mails", "2..3", *about).out == "Added 2 queues.\n"
        for queue in Queue.objects.all():
            assert (queue.parameter, queue.labels) == ("p", {"zone": "eu", "disk": "ssd"})

    def test_queues_leave_at_once_if_nobody_has_them(self, orders: TaskType) -> None:
        assert queues("remove", "orders", "0..2").code == 0
        assert Queue.objects.count() == 5

    def test_pins(self, orders: TaskType) -> None:
        server(orders)
        b = server(orders, "B")
        planned(orders)
        assert queues("pin", "orders", "0", "1", "--to", "B").out == "Pinned 2 queues.\n"
        assert set(Queue.objects.filter(queue_id__in="01").values_list("pin", "req_server")) == {("B", b.pk)}
        assert queues("unpin", "orders", "0", "1").out == "Unpinned 2 queues.\n"
        assert not Queue.objects.exclude(pin="").exists()

    def test_pins_to_a_server_that_is_not_there_now(self, orders: TaskType) -> None:
        server(orders)
        server(orders, "B")
        said = "Pinned 1 queue. No server is called nosuch now (there are: A, B).\n"
        assert queues("pin", "orders", "0", "--to", "nosuch").out == said

    def test_drains_and_back(self, orders: TaskType) -> None:
        a = server(orders)
        planned(orders)
        server(orders, "B")
        assert queues("drain", "orders", "A").out == f"Drains: A #{a.pk}.\n"
        assert Queue.objects.filter(req_server=None).count() == 0
        assert queues("undrain", "orders", f"A #{a.pk}", "--json").json == {"servers": [f"A #{a.pk}"]}
        assert Queue.objects.filter(req_server=None).count() == 4

    def test_that_had_nothing_to_end_say_so(self, orders: TaskType) -> None:
        a = server(orders)
        assert queues("unpin", "orders", "0").out == "None of them was pinned.\n"
        assert queues("undrain", "orders", "A").out == f"None of them was draining: A #{a.pk}.\n"
        assert queues("resume", "orders").out == "orders was not paused.\n"

    def test_the_operator_is_named(self, orders: TaskType) -> None:
        queues("pause", "orders")
        assert "(shell)" in TaskType.objects.get().assigned_by


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "mails"], "task_type='mails' is not allowed: one of orders; "),
        (["plan", "mails"], "task_type='mails' is not allowed: one of orders; "),
        (["add", "mails", "1"], "task_type='mails' is not allowed: one of orders; "),
        (["drain", "mails", "A"], "task_type='mails' is not allowed: one of orders; "),
        (["pause", "mails"], "task_type='mails' is not allowed: one of orders; "),
        (
            ["add", "orders", "x", "--new"],
            "task_type='orders' is not allowed: there is one of this name already",
        ),
        (["add", "orders", "3"], "queue=['3'] is not allowed: orders has it already"),
        (["add", "orders", "a", "a"], "queue=['a'] is not allowed: each queue once"),
        (["add", "orders", "a" * 101], "one line of text, 1 to 100 printable characters"),
        (["add", "orders", "9..3"], "queue='9..3' is not allowed: a range that goes up"),
        (["add", "orders", "0..10000"], "at most 10000 at once"),
        (["add", "orders", "0..9998", "x", "y"], "at most 10000 at once"),
        (["add", "orders", "a", "--label", "eu"], "--label='eu' is not allowed: KEY=VALUE"),
        (["add", "orders", "a", "--parameter", "p" * 2_001], "text of at most 2000 characters"),
        (["add", "orders", "a", "--heartbeat", "2s"], "--heartbeat=2.0 is not allowed: only with --new"),
        (["add", "orders", "a", "--strategy", "sticky"], "--strategy='sticky' is not allowed: only with --new"),
        (
            ["add", "mails", "a", "--new", "--heartbeat", "4s", "--judge-dead", "7s"],
            "--judge-dead=7.0 is not allowed: At least two heartbeats (8 s): one may be late.",
        ),
        (
            ["add", "mails", "a", "--new", "--drain-within", "1s"],
            "--drain-within=1.0 is not allowed: At least as long as until a server is judged dead (6 s).",
        ),
        (["add", "mails", "a", "--new", "--heartbeat", "soon"], "'soon' is no span of time"),
        (["add", "mails", "a", "--new", "--label", "x"], "KEY=VALUE"),
        (["remove", "orders", "0", "99", "98"], "queue=['99', '98'] is not allowed: orders has no such queues"),
        (["pin", "orders", "99", "--to", "A"], "queue=['99'] is not allowed: orders has no such queue"),
        (["pin", "orders", "1", "--to", ""], "--to='' is not allowed: a server's name"),
        (["show", "orders", "1", "99"], "queue=['99'] is not allowed: orders has no such queue"),
        (["add", "orders", "eu-0..eu-3"], "queue=['eu-0..eu-3'] is not allowed: no two dots in it"),
        (["unpin", "orders", "99"], "queue=['99'] is not allowed: orders has no such queue"),
        (["drain", "orders", "B"], "server='B' is not allowed: one of A"),
        (["undrain", "orders", "A #0"], "server='A #0' is not allowed: one of A"),
        (["plan", "orders", "--without", "B"], "server='B' is not allowed: one of A"),
        (["plan", "orders", "--with", "B:x"], "--with='B:x' is not allowed: NAME or NAME:WEIGHT"),
        (["plan", "orders", "--with", "B:0"], "--with=0 is not allowed: a whole number from 1 to 1000"),
        (["plan", "orders", "--with", "B", "--labels", "x"], "--labels='x' is not allowed: KEY=VALUE"),
        (["show", "--watch", "0"], "--watch=0.0 is not allowed"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(orders: TaskType, words: list[str], said: str) -> None:
    server(orders)
    planned(orders)
    before = [list(model.objects.order_by("pk").values()) for model in (TaskType, Queue, Server, Move)]
    refused = queues(*words)
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert refused.out == ""
    assert refused.code == 1
    assert [list(model.objects.order_by("pk").values()) for model in (TaskType, Queue, Server, Move)] == before


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
    shown = list(report.runs(ids))
    assert shown == expected
    assert queue_ids(shown) == ids


def test_no_queue_is_left_out_of_a_long_list_of_moves() -> None:
    moved = [
        Moved("orders", 1, str(number), Move.What.ASSIGNED, "", "A #1", 1, "nobody had it", 3.0)
        for number in range(0, 400, 2)
    ]
    lines = report.moves_as_text(moved, 100)[1:]
    assert len(lines) > 5
    shown = " ".join(lines).replace(",", " ").split()
    assert set(shown) >= {str(number) for number in range(0, 400, 2)}
