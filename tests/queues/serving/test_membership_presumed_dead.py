"""One incarnation of a server that was judged dead, and the next one."""

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Server
from resourcepool.queues import administration
from resourcepool.queues.serving.held_queue import WorkSlot
from resourcepool.queues.serving.membership import Membership
from tests.eventually import eventually
from tests.queues.members import (
    NAME,
    ask,
    asked_ago,
    dies,
    finds_itself_dead,
    handles,
    joined,
    left,
    made,
    one,
    replan,
    returned,
    stranger,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestBeingJudgedDead:
    def test_does_not_end_its_draining_though_its_row_is_gone_by_now(self) -> None:
        a, _ = one()
        ask(a)
        a.turn()
        dies(Server.objects.get(pk=a.lease.pk))
        replan(if_due=True)
        assert not Server.objects.filter(pk=a.lease.pk).exists()
        a.turn()
        assert a.next_config().state == Server.State.DRAINING

    def test_ends_every_handle(self) -> None:
        made(2)
        a = joined("A")
        a.turn()
        mine = handles(a)
        finds_itself_dead(a)
        eventually(lambda: all(each.lost.is_set() for each in mine.values()))
        with pytest.raises(LeaseLost, match="Server"):
            mine["1"].ensure_held()

    def test_the_same_queue_is_not_worked_on_again_before_the_old_work_has_ended(self) -> None:
        made(2)
        a = joined("A")
        a.turn()
        old = handles(a)["1"]
        with pytest.raises(LeaseLost), old.working():
            again = reborn(a)
            assert handles(again)["1"].fence == old.fence + 1
            assert not again.begin(handles(again)["1"], WorkSlot(is_loop=True))
            assert not again.begin(handles(again)["1"], WorkSlot(is_loop=False)), "not even in the same thread"
            assert again.begin(handles(again)["2"], WorkSlot(is_loop=True))
        assert again.begin(handles(again)["1"], WorkSlot(is_loop=True))

    def test_nor_is_a_queue_that_came_back_to_the_same_server(self) -> None:
        made(1)
        a = joined("A")
        a.turn()
        old = handles(a)["1"]
        with pytest.raises(LeaseLost), old.working():
            b = stranger("B")
            administration.drain(NAME, "A")
            asked_ago("1", 31)
            replan(if_due=True)
            a.turn()
            administration.undrain(NAME, "A")
            left(b)
            a.turn()
            new = handles(a)["1"]
            assert new.fence == old.fence + 2
            assert not a.begin(new, WorkSlot(is_loop=True))
            assert a.in_hand
        assert a.begin(new, WorkSlot(is_loop=True))


def reborn(dead: Membership) -> Membership:
    """Let this one be judged dead, and the same process register again."""
    finds_itself_dead(dead)
    again = returned(dead)
    again.turn()
    return again
