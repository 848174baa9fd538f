"""Operators' changes to queue groups, queues and servers, and their errors."""

from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.models import Move, Queue, QueueGroup
from resourcepool.queues import administration
from resourcepool.queues.planning.assignment import Member
from tests.app.rows import columns
from tests.queues.members import (
    NAME,
    SETTINGS,
    create_queue_group,
    expire,
    foreign_server,
    owners,
    queue,
    read_queue_group,
    replan,
    requested_ago,
    requested_by_b,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestCreating:
    def test_makes_a_queue_group_with_its_queues(self) -> None:
        administration.create("mails", ["eu", "us"], strategy="round_robin", heartbeat_every=2.0)
        found = QueueGroup.objects.get()
        assert (found.name, found.strategy, found.heartbeat_every) == ("mails", "round_robin", 2.0)
        assert list(Queue.objects.order_by("pk").values_list("queue_id", flat=True)) == ["eu", "us"]

    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"judge_dead_after": 1.9, "heartbeat_every": 1.0}, "judge_dead_after"),
            ({"handover_timeout": 5.0, "judge_dead_after": 6.0}, "handover_timeout"),
            ({"reload_every": 2.0, "heartbeat_every": 1.0}, "reload_every"),
            ({"heartbeat_every": 0}, "heartbeat_every"),
            ({"heartbeat_every": float("nan")}, "heartbeat_every"),
            ({"handover_timeout": float("inf")}, "handover_timeout"),
            ({"judge_dead_after": "soon"}, "judge_dead_after"),
            ({"strategy": "best"}, "strategy"),
        ],
        ids=lambda value: str(value) if isinstance(value, dict) else "",
    )
    def test_with_settings_that_contradict_each_other_is_refused(
        self, settings: dict[str, Any], named: str
    ) -> None:
        with pytest.raises(BadOption, match=named):
            administration.create("mails", ["eu"], **settings)
        assert QueueGroup.objects.count() == 0

    def test_two_heartbeats_are_enough_to_judge_by(self) -> None:
        administration.create("mails", [], heartbeat_every=1.0, judge_dead_after=2.0)

    @pytest.mark.parametrize("name", ["", "n" * 101, "a\nb", 7])
    def test_under_a_bad_name_is_refused(self, name: Any) -> None:
        with pytest.raises(BadOption, match="queue_group"):
            administration.create(name)

    def test_twice_is_refused(self) -> None:
        administration.create("mails")
        with pytest.raises(BadOption, match="already"):
            administration.create("mails")


class TestQueues:
    def test_may_be_given_another_parameter_which_their_servers_hear_of(self) -> None:
        a = sole_server(2)
        assert administration.change_queues(NAME, ["1"], parameter="p") == 1
        a.turn()
        assert [each.parameter for each in a.held] == ["p", ""]

    def test_go_where_their_new_labels_let_them(self) -> None:
        create_queue_group(4)
        foreign_server("A")
        b = foreign_server("B", labels={"zone": "eu"})
        administration.change_queues(NAME, ["1", "2"], labels={"zone": "eu"})
        assert {one.req_server_id or one.cur_server_id for one in (queue("1"), queue("2"))} == {b.pk}

    def test_that_are_to_be_changed_in_nothing_are_refused(self) -> None:
        create_queue_group(1)
        with pytest.raises(BadOption, match="a parameter or labels are required"):
            administration.change_queues(NAME, ["1"])

    def test_that_are_added_are_shared_at_once(self) -> None:
        create_queue_group(1)
        foreign_server("A")
        assert administration.add_queues(NAME, ["x", "y"], parameter="p", labels={}) == 2
        assert owners() == "A A A"

    @pytest.mark.parametrize(
        ("ids", "said"),
        [
            (["x", "x"], "each queue once"),
            (["x", "1", "2"], "already exists in orders"),
            ([""], "queue"),
            (["q" * 101], "queue"),
            (["a\nb"], "queue"),
            ([str(number) for number in range(10_001)], "at most 10000"),
        ],
        ids=["twice", "there already", "empty", "long", "two lines", "too many"],
    )
    def test_that_cannot_be_added_leave_nothing_half_done(self, ids: list[str], said: str) -> None:
        create_queue_group(3)
        with pytest.raises(BadOption, match=said):
            administration.add_queues(NAME, ids)
        assert Queue.objects.count() == 3

    @pytest.mark.parametrize("wrong", [{"parameter": "p" * 2_001}, {"labels": {"zone": 1}}], ids=str)
    def test_with_a_bad_parameter_or_label_are_refused(self, wrong: dict[str, Any]) -> None:
        create_queue_group(1)
        with pytest.raises(BadOption, match=next(iter(wrong))):
            administration.add_queues(NAME, ["x"], **wrong)

    def test_that_nobody_has_are_removed_at_once(self) -> None:
        create_queue_group(3)
        administration.remove_queues(NAME, ["1", "3"])
        assert list(Queue.objects.values_list("queue_id", flat=True)) == ["2"]

    def test_that_somebody_has_are_removed_when_it_has_finished_or_is_late(self) -> None:
        create_queue_group(2)
        foreign_server("A")
        administration.remove_queues(NAME, ["1"])
        assert Queue.objects.count() == 2
        assert columns(queue("1"))["is_retiring"]
        requested_ago("1", 31)
        replan(if_due=True)
        assert Queue.objects.count() == 1

    def test_that_are_unknown_are_named(self) -> None:
        create_queue_group(1)
        with pytest.raises(BadOption, match=r"'8', '9'.*has no such queues"):
            administration.remove_queues(NAME, ["1", "8", "9"])
        assert not columns(queue("1"))["is_retiring"]

    def test_are_pinned_to_a_name_and_freed_again(self) -> None:
        create_queue_group(2)
        foreign_server("A")
        foreign_server("B")
        administration.pin(NAME, ["1", "2"], "B")
        assert owners() == "A>B A>B"
        administration.pin(NAME, ["1", "2"], "")
        assert sorted(owners().split()) == ["A", "A>B"]

    def test_are_pinned_to_a_name_and_not_to_one_run(self) -> None:
        create_queue_group(1)
        a = foreign_server("A")
        with pytest.raises(BadOption, match="the name without the number: A"):
            administration.pin(NAME, ["1"], str(a))
        with pytest.raises(BadOption, match="the name without the number: A"):
            administration.pin(NAME, ["1"], "A #987654")
        foreign_server("odd #3")
        administration.pin(NAME, ["1"], "odd #3")  # a server has this name

    @pytest.mark.parametrize("wrong", ["0..3", "a..b", ".."])
    def test_that_look_like_a_range_are_refused(self, wrong: str) -> None:
        with pytest.raises(BadOption, match=r'no "\.\."'):
            administration.create(NAME, [wrong])


class TestServers:
    def test_that_drain_keep_nothing_and_get_nothing_until_told_otherwise(self) -> None:
        create_queue_group(2)
        a = foreign_server("A")
        foreign_server("B")
        assert administration.drain(NAME, "A") == [f"A #{a.pk}"]
        assert owners() == "A>B A>B"
        assert administration.undrain(NAME, f"A #{a.pk}") == [f"A #{a.pk}"]
        assert sorted(owners().split()) == ["A", "A>B"]

    def test_of_one_name_drain_together_or_by_number(self) -> None:
        create_queue_group(2)
        one, two = foreign_server("A"), foreign_server("A")
        assert administration.drain(NAME, str(two)) == [str(two)]
        assert administration.drain(NAME, "A") == [str(one), str(two)]

    def test_that_are_not_there_are_refused_with_those_that_are(self) -> None:
        create_queue_group(1)
        with pytest.raises(BadOption, match="no server is running"):
            administration.drain(NAME, "C")
        foreign_server("A")
        expire(foreign_server("B"))
        with pytest.raises(BadOption, match="one of A"):
            administration.drain(NAME, "B")


def test_a_pause_is_a_change_that_servers_learn_of_and_moves_nothing() -> None:
    create_queue_group(2)
    foreign_server("A")
    before, generation = owners(), read_queue_group().generation
    administration.pause(NAME, by="ann")
    assert (read_queue_group().is_paused, read_queue_group().assigned_by, read_queue_group().generation) == (
        True,
        "ann",
        generation + 1,
    )
    administration.resume(NAME, by="bob")
    assert (read_queue_group().is_paused, read_queue_group().assigned_by, read_queue_group().generation) == (
        False,
        "bob",
        generation + 2,
    )
    assert owners() == before


def test_a_preview_tells_what_would_move_and_moves_nothing() -> None:
    create_queue_group(4)
    a = foreign_server("A")
    foreign_server("B")
    rows = [columns(one) for one in Queue.objects.order_by("pk")]
    history, generation = Move.objects.count(), read_queue_group().generation
    changes, workers, _queues = administration.preview(NAME, without=["A"], joining=[Member(-1, "C", weight=3)])
    names = {worker.pk: worker.name for worker in workers}
    assert [names[change.to or 0] for change in changes] == ["B", "C", "C", "C"]
    assert {change.reason for change in changes} == {f"A #{a.pk} left"}
    assert [columns(one) for one in Queue.objects.order_by("pk")] == rows
    assert (Move.objects.count(), read_queue_group().generation) == (history, generation)


def test_a_late_copy_of_which_something_else_is_saved_gives_nobody_more_time() -> None:
    requested_by_b(handover_timeout=100)
    late = read_queue_group()
    QueueGroup.objects.update(handover_timeout=200)
    requested_ago("1", 90)
    before, generation = columns(queue("1")), read_queue_group().generation
    late.strategy = "round_robin"
    late.save(update_fields=["strategy"])
    assert columns(queue("1")) == before
    assert (
        read_queue_group().strategy,
        read_queue_group().handover_timeout,
        read_queue_group().generation,
    ) == (
        "round_robin",
        200,
        generation,
    )


def test_a_copy_that_is_saved_late_sets_back_nothing_that_planning_has_written() -> None:
    create_queue_group(2)
    queue_group, one = read_queue_group(), queue("1")
    foreign_server("A")
    before = columns(read_queue_group()), columns(queue("1"))
    queue_group.heartbeat_every, one.parameter = 0.2, "new"
    queue_group.save()
    one.save()
    assert (columns(read_queue_group()), columns(queue("1"))) == (
        {**before[0], "heartbeat_every": 0.2},
        {**before[1], "parameter": "new"},
    )
    assert owners() == "A A"


def test_every_order_to_an_unknown_queue_group_names_those_that_exist() -> None:
    administration.create("mails", ["1"], **SETTINGS)
    orders = (
        lambda: administration.add_queues("mail", ["2"]),
        lambda: administration.remove_queues("mail", ["1"]),
        lambda: administration.pin("mail", ["1"], "A"),
        lambda: administration.drain("mail", "A"),
        lambda: administration.pause("mail"),
        lambda: administration.resume("mail"),
        lambda: administration.preview("mail"),
    )
    for order in orders:
        with pytest.raises(BadOption, match="one of mails"):
            order()


def test_a_queue_is_called_by_the_name_of_its_queue_group_and_asks_nothing_for_it(
    django_assert_num_queries: Any,
) -> None:
    orders = administration.create("orders", ["7"])
    with django_assert_num_queries(1):
        assert str(Queue.objects.select_related("queue_group").get()) == "orders / 7"
    with django_assert_num_queries(1):
        assert str(Queue.objects.get()) == f"{orders.pk} / 7"
