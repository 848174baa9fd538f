"""A run of a server that was presumed dead, and the next run."""

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Server
from resourcepool.queues import administration
from resourcepool.queues.serving.held_queue import WorkSlot
from resourcepool.queues.serving.membership import Membership
from tests.eventually import eventually
from tests.queues.members import (
    NAME,
    expire,
    foreign_server,
    handles,
    leave,
    notice_expiry,
    rejoin,
    replan,
    request_all,
    requested_ago,
    single_queue,
    sole_server,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestBeingJudgedDead:
    def test_does_not_end_its_draining_though_its_row_is_gone_by_now(self) -> None:
        a, _ = single_queue()
        request_all(a)
        a.turn()
        expire(Server.objects.get(pk=a.lease.pk))
        replan(if_due=True)
        assert not Server.objects.filter(pk=a.lease.pk).exists()
        a.turn()
        assert a.next_config().state == Server.State.DRAINING

    def test_ends_every_handle(self) -> None:
        a = sole_server(2)
        mine = handles(a)
        notice_expiry(a)
        eventually(lambda: all(each.lost.is_set() for each in mine.values()))
        with pytest.raises(LeaseLost, match="Server"):
            mine["1"].ensure_held()

    def test_the_same_queue_is_not_worked_on_again_before_the_old_work_has_ended(self) -> None:
        a = sole_server(2)
        old = handles(a)["1"]
        with pytest.raises(LeaseLost), old.working():
            again = reborn(a)
            assert handles(again)["1"].fence == old.fence + 1
            assert not again.begin(handles(again)["1"], WorkSlot(is_loop=True))
            assert not again.begin(handles(again)["1"], WorkSlot(is_loop=False)), "not even in the same thread"
            assert again.begin(handles(again)["2"], WorkSlot(is_loop=True))
        assert again.begin(handles(again)["1"], WorkSlot(is_loop=True))

    def test_nor_is_a_queue_that_came_back_to_the_same_server(self) -> None:
        a = sole_server(1)
        old = handles(a)["1"]
        with pytest.raises(LeaseLost), old.working():
            b = foreign_server("B")
            administration.drain(NAME, "A")
            requested_ago("1", 31)
            replan(if_due=True)
            a.turn()
            administration.undrain(NAME, "A")
            leave(b)
            a.turn()
            new = handles(a)["1"]
            assert new.fence == old.fence + 2
            assert not a.begin(new, WorkSlot(is_loop=True))
            assert a.in_hand
        assert a.begin(new, WorkSlot(is_loop=True))


def reborn(dead: Membership) -> Membership:
    """Let this run be presumed dead, and the same process register again."""
    notice_expiry(dead)
    again = rejoin(dead)
    again.turn()
    return again
