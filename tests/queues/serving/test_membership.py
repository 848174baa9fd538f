"""One run of a server: it registers and checks; the test takes its turns."""

from collections.abc import Callable

import pytest
from django.db import transaction

from resourcepool.clock import monotonic
from resourcepool.exceptions import BadOption, ClaimInTransaction, LeaseLost, RowLocked
from resourcepool.models import Queue, QueueGroup, Server
from resourcepool.queues import administration
from resourcepool.queues.serving import registration
from resourcepool.queues.serving.held_queue import WorkSlot
from resourcepool.queues.serving.membership import Membership
from tests.app.rows import columns
from tests.committed import Clock, Statement
from tests.concurrency.connection_cutter import Wire
from tests.queues.members import (
    NAME,
    TTL,
    create_queue_group,
    expire,
    foreign_server,
    handles,
    has_a_server,
    join,
    owners,
    read_queue_group,
    single_queue,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestRegistering:
    def test_gives_the_first_server_everything(self) -> None:
        create_queue_group(3)
        a = join("A", weight=2, labels={"zone": "eu"}, limit=9)
        assert owners() == "A A A"
        a.turn()
        assert list(handles(a)) == ["1", "2", "3"]
        row = columns(Server.objects.get())
        assert (row["weight"], row["labels"], row["limit"], row["fence"]) == (2, {"zone": "eu"}, 9, 1)
        assert row["state"] == "up"

    def test_inside_a_transaction_is_refused(self) -> None:
        create_queue_group(1)
        with pytest.raises(ClaimInTransaction), transaction.atomic():
            join("A")
        assert Server.objects.count() == 0

    def test_without_queues_is_refused_and_says_how_to_add_some(self) -> None:
        create_queue_group(0)
        with pytest.raises(BadOption, match=r"has no queues.*resourcepool_queues add orders"):
            join("A")
        assert Server.objects.count() == 0

    def test_waits_for_others_that_plan(self, others_plan: Callable[[int], None]) -> None:
        create_queue_group(2)
        others_plan(2)
        join("A")
        assert owners() == "A A"

    def test_does_not_wait_for_ever(
        self, others_plan: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_queue_group(2)
        others_plan(10**9)
        monkeypatch.setattr(registration, "REGISTER_TIMEOUT", 0.05)
        with pytest.raises(RowLocked):
            join("A")
        assert Server.objects.count() == 0

    @has_a_server
    def test_that_was_rolled_back_registers_again(self, wire: Wire) -> None:
        create_queue_group(2)
        wire.cut_after("INSERT INTO resourcepool_server")
        a = join("A")
        assert wire.cuts == 1
        assert [row.pk for row in Server.objects.all()] == [a.lease.pk]


class TestATurn:
    def test_of_a_server_that_joins_during_a_pause_lets_no_loop_begin_when_it_tells_of_the_queues(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_queue_group(1)
        administration.pause(NAME)
        a, begun = join("A"), list[bool]()
        begin = lambda: begun.extend(a.begin(mine, WorkSlot(is_loop=True)) for mine in a.held)  # noqa: E731
        monkeypatch.setattr(a.changed, "notify_all", begin)
        a.turn()
        assert begun == [False]

    def test_with_nothing_to_do_renews_when_that_is_due_and_looks(
        self, statements: list[Statement], process_clock: Clock
    ) -> None:
        create_queue_group(5, heartbeat_every=5.0)
        a = join("A")
        foreign_server("B")
        a.turn()
        a.turn()
        statements.clear()
        a.turn()
        mine = [one.sql for one in statements if one.thread == "MainThread"]
        assert [sql.split()[0] for sql in mine] == ["SELECT"]
        process_clock.advance(5.1)
        a.turn()
        mine = [one.sql for one in statements if one.thread == "MainThread"]
        assert [sql.split()[0] for sql in mine] == ["SELECT", "UPDATE", "SELECT"]

    def test_hands_over_what_is_asked_for_and_keeps_the_rest(self) -> None:
        a = sole_server(4)
        before = handles(a)
        foreign_server("B")
        a.turn()
        assert sorted(owners().split()) == ["A", "A", "B", "B"]
        kept = handles(a)
        assert len(kept) == 2
        assert all(before[each] is kept[each] for each in kept)
        assert [each for each in before if before[each].lost.is_set()] == [x for x in before if x not in kept]

    def test_plans_when_another_server_has_died(self) -> None:
        create_queue_group(4)
        b = foreign_server("B")
        a = join("A")
        a.turn()
        expire(b)
        a.turn()
        assert len(handles(a)) == 4

    def test_has_a_queue_that_is_removed_until_the_work_on_it_ends(self) -> None:
        a = sole_server(2)
        with handles(a)["1"].working():
            administration.remove_queues(NAME, ["1"])
            a.turn()
            assert sorted(Queue.objects.values_list("queue_id", flat=True)) == ["1", "2"]
            assert not a.begin(handles(a)["1"], WorkSlot(is_loop=True))
        a.turn()
        assert list(Queue.objects.values_list("queue_id", flat=True)) == ["2"]
        assert list(handles(a)) == ["2"]

    def test_replaces_a_handle_that_was_ended_by_mistake_once_no_work_on_it_goes_on(self) -> None:
        a, mine = single_queue()
        with pytest.raises(LeaseLost), mine.working():
            mine.end(LeaseLost("a test says so"))
            administration.add_queues(NAME, ["x"])
            a.turn()
            assert list(handles(a)) == ["x"]
        administration.add_queues(NAME, ["y"])
        a.turn()
        again = handles(a)["1"]
        assert again is not mine
        assert again.fence == mine.fence

    def test_comes_in_time_for_its_own_interval_though_the_operator_has_set_longer_ones(self) -> None:
        create_queue_group(1)
        a = join("A")
        QueueGroup.objects.update(
            heartbeat_every=100, reload_every=90, judge_dead_after=300, handover_timeout=400
        )
        assert a.turn() - monotonic() <= TTL / 3

    def test_comes_soon_while_it_waits_for_what_it_has_asked_for_but_not_for_ever(
        self, process_clock: Clock
    ) -> None:
        create_queue_group(2, heartbeat_every=4.0, reload_every=0.5)
        foreign_server("A")
        b = join("B")
        assert wait_of(b) == pytest.approx(0.5)
        process_clock.advance(3 * 4.0 + 0.1)
        assert wait_of(b) == pytest.approx(4.0, abs=0.5)


def wait_of(member: Membership) -> float:
    """Take a turn; return how long after its check the next turn is due."""
    due_at = member.turn()
    assert member._snapshot is not None
    return due_at - member._snapshot.sent_at


def test_labels_limits_pins_and_weights_hold_through_the_database() -> None:
    create_queue_group(12)
    administration.add_queues(NAME, ["eu-1", "eu-2"], labels={"zone": "eu"})
    administration.pin(NAME, ["1"], "small")
    foreign_server("eu", labels={"zone": "eu"})
    foreign_server("small", limit=2)
    foreign_server("big", weight=3)
    wanted = [each.rpartition(">")[2] for each in owners().split()]
    assert wanted[12:] == ["eu", "eu"]
    assert wanted[0] == "small"
    assert wanted.count("small") == 2
    assert {name: wanted.count(name) for name in ("eu", "big")} == {"eu": 3, "big": 9}
    assert read_queue_group().assigned_by == "big"
