"""A server hands over requested queues, and all queues when it leaves."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from resourcepool.db.row_locks import row_locked
from resourcepool.exceptions import DatabaseUnavailable, RowLocked
from resourcepool.models import Server
from resourcepool.queues import administration, reassignment
from resourcepool.queues.serving import membership as membership_module
from resourcepool.queues.serving.held_queue import WorkSlot
from tests.concurrency.connection_cutter import Interference, Wire
from tests.queues.members import (
    AWAY,
    COMMIT,
    NAME,
    create_queue_group,
    expire,
    foreign_server,
    handles,
    has_a_server,
    join,
    leave,
    moves,
    owners,
    queue,
    request_all,
    single_queue,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")

CHANGES = f"UPDATE {connection.ops.quote_name('resourcepool_queuegroup')}"  # begins every change of the queues


class TestHandingOver:
    def test_of_which_the_database_says_nothing_leaves_the_queue_unused(
        self, interference: Interference
    ) -> None:
        a, mine = single_queue()
        foreign_server("B")
        administration.drain(NAME, "A")
        interference.expect(CHANGES, AWAY, times=1_000)
        with pytest.raises(DatabaseUnavailable):
            a.turn()
        assert not mine.is_held
        assert not a.begin(mine, WorkSlot(is_loop=True))
        interference.expect("", OperationalError, times=0)
        a.turn()
        assert owners() == "B"

    def test_given_up_in_doubt_it_is_had_again_only_under_a_new_fence(
        self, interference: Interference, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        b = foreign_server("B")
        administration.drain(NAME, "A")
        interference.expect(CHANGES, AWAY, times=1_000)
        with pytest.raises(DatabaseUnavailable):
            a.turn()
        interference.expect("", OperationalError, times=0)
        administration.undrain(NAME, "A")
        leave(b)
        assert owners() == "A"
        release, trusted = a._release_idle, []

        def note_and_release() -> bool:
            trusted.append(mine.is_held)
            return release()

        monkeypatch.setattr(a, "_release_idle", note_and_release)
        a.turn()
        a.turn()
        assert not any(trusted)
        again = handles(a)["1"]
        assert again is not mine
        assert again.fence == mine.fence + 2
        assert mine.lost.is_set()

    def test_that_finds_a_row_locked_has_changed_nothing_and_is_tried_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        request_all(a)

        def fail(*_: object) -> None:
            raise row_locked("default")

        with monkeypatch.context() as locked:
            locked.setattr(reassignment, "release", fail)
            with pytest.raises(RowLocked):
                a.turn()
        assert mine.is_held
        assert not mine.is_in_doubt
        assert (owners(), queue("1").fence) == ("A>B", mine.fence)
        a.turn()
        assert (owners(), queue("1").fence) == ("B", mine.fence + 1)

    def test_to_a_server_that_dies_just_before_leaves_the_queue_to_its_owner_who_relies_on_it_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        b, release = request_all(a), reassignment.release

        def release_too_late(*arguments: Any) -> reassignment.Outcome:
            assert not mine.is_held
            expire(b)
            return release(*arguments)

        monkeypatch.setattr(reassignment, "release", release_too_late)
        a.turn()
        assert (owners(), queue("1").fence) == ("A", mine.fence)
        mine.ensure_held()
        assert handles(a) == {"1": mine}

    @has_a_server
    def test_of_which_the_answer_was_lost_is_not_relied_on_for_a_moment(
        self, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, mine = single_queue()
        foreign_server("B")
        administration.drain(NAME, "A")
        look, seen = membership_module.read_snapshot, []

        def look_and_note(*arguments: Any) -> Any:
            seen.append((owners(), mine.is_held))
            return look(*arguments)

        monkeypatch.setattr(membership_module, "read_snapshot", look_and_note)
        wire.cut_after(COMMIT)
        a.turn()
        assert wire.cuts == 1
        assert seen == [("A>B", True), ("B", False)]
        assert mine.lost.is_set()
        assert len(moves("handed_over")) == 1
        assert queue("1").fence == mine.fence + 1


class TestLeaving:
    def test_hands_everything_over_at_once_and_signs_off(self) -> None:
        a = sole_server(4)
        mine = handles(a)
        foreign_server("B")
        a.leave()
        assert owners() == "B B B B"
        assert [row.name for row in Server.objects.all()] == ["B"]
        assert all(each.lost.is_set() for each in mine.values())
        assert not a.lease.is_held

    def test_waits_for_others_that_plan_because_no_other_may_be_left_to_remove_its_row(
        self, others_plan: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create_queue_group(2)
        a = join("A")
        others_plan(2)
        a.leave()
        assert owners() == "- -"
        assert Server.objects.count() == 0


def test_what_a_servers_labels_forbid_is_given_up_after_the_work_in_hand_also_when_nobody_may_have_it() -> None:
    a, mine = single_queue()
    with mine.working():
        administration.change_queues(NAME, ["1"], labels={"zone": "mars"})
        a.turn()
        assert mine.should_stop
        assert owners() == "A"
    a.turn()
    assert owners() == "-"
    assert moves("requested", "unassigned") == [
        f"requested 1 {a}>: {a} lacks zone=mars",
        f"unassigned 1 {a}>: its owner finished its work",
    ]
