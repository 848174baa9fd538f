"""Owners of queues, through the database: by docs/reference/queues.md, after a crash, after a deadline."""

from typing import Any

import pytest

from resourcepool.models import Move, Server
from resourcepool.queues import reassignment
from tests.app.rows import columns
from tests.queues.members import (
    create_queue_group,
    expire,
    foreign_server,
    join,
    moves,
    owners,
    queue,
    read_queue_group,
    replan,
    requested_ago,
    requested_by_b,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestTheDocument:
    def test_its_tables_hold_line_by_line(self) -> None:
        create_queue_group(5, strategy="round_robin")
        a = join("A")
        assert owners() == "A A A A A"
        foreign_server("B")
        assert owners() == "A A>B A A>B A"
        foreign_server("C")
        assert owners() == "A A>B A>C A A>B"
        foreign_server("D")
        assert owners() == "A A>B A>C A>D A"
        a.turn()
        assert owners() == "A B C D A"


class TestADeath:
    def test_frees_the_queues_for_whoever_plans_next(self) -> None:
        create_queue_group(4)
        a, _ = foreign_server("A"), foreign_server("B")
        expire(a)
        replan(if_due=True)
        assert owners() == "B B B B"
        assert not Server.objects.filter(pk=a.pk).exists()
        assert moves("assigned")[-1].endswith("presumed dead: no heartbeat for 20 s")

    def test_of_all_leaves_the_queues_to_nobody(self) -> None:
        create_queue_group(2)
        expire(foreign_server("A"))
        replan(if_due=True)
        assert owners() == "- -"
        assert Server.objects.count() == 0

    def test_of_the_requester_leaves_the_queue_where_it_is(self) -> None:
        a, b = requested_by_b()
        expire(b)
        reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])
        assert owners() == "A"
        assert columns(queue("1"))["requested_at"] is None
        replan(if_due=True)
        assert owners() == "A"

    def test_every_new_owner_has_a_new_fence(self) -> None:
        create_queue_group(1)
        fences = [queue("1").fence]
        for _ in range(3):
            server = foreign_server("A")
            fences.append(queue("1").fence)
            expire(server)
            replan(if_due=True)
            fences.append(queue("1").fence)
        assert fences == list(range(fences[0], fences[0] + 7))
        assert list(Move.objects.order_by("pk").values_list("fence", flat=True)) == fences[1:]


class TestTakingOver:
    def test_happens_when_the_owner_is_late_and_under_a_new_fence(self) -> None:
        a, _ = requested_by_b()
        requested_ago("1", 31)
        before = queue("1").fence
        replan(if_due=True)
        assert owners() == "B"
        assert queue("1").fence == before + 1
        assert columns(queue("1"))["requested_at"] is None
        assert moves()[-1] == f"taken_over 1 A #{a.pk}>{moved_to()}: A #{a.pk} did not finish its work in time"

    def test_is_not_put_off_by_being_asked_for_somebody_else(self) -> None:
        _, b = requested_by_b()
        requested_ago("1", 20)
        before = columns(queue("1"))["requested_at"]
        foreign_server("C")
        expire(b)
        replan(if_due=True)
        assert owners() == "A>C"
        assert columns(queue("1"))["requested_at"] == before


class TestReleasing:
    def test_gives_only_what_is_still_this_servers(self) -> None:
        a, b = requested_by_b()
        requested_ago("1", 31)
        replan(if_due=True)
        before = columns(queue("1"))
        reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])
        assert columns(queue("1")) == before
        assert before["cur_server_id"] == b.pk

    def test_late_does_not_speed_up_what_somebody_asks_the_new_owner_for(self) -> None:
        a, b = requested_by_b()
        requested_ago("1", 31)
        replan(if_due=True)
        foreign_server("C")
        Server.objects.filter(pk=b.pk).update(state=Server.State.DRAINING)
        replan()
        reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])
        assert owners() == "B>C"

    def test_of_a_queue_given_up_in_doubt_frees_it_under_a_new_fence(self) -> None:
        create_queue_group(1)
        a = foreign_server("A")
        pk, before = queue("1").pk, queue("1").fence
        reassignment.release("default", read_queue_group().pk, "A", a.pk, [pk], [pk])
        assert owners() == "-"
        assert queue("1").fence == before + 1
        replan(if_due=True)
        assert owners() == "A"
        assert queue("1").fence == before + 2

    def test_notes_who_has_a_queue_now_and_since_when_the_giver_has_none(self) -> None:
        a, b = requested_by_b()
        assert idle_since(a) is None
        assert idle_since(b) is not None
        reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])
        assert idle_since(a) is not None
        assert idle_since(b) is None


def idle_since(server: Server) -> Any:
    return Server.objects.values_list("idle_since", flat=True).get(pk=server.pk)


def moved_to() -> str:
    return str(Move.objects.order_by("-pk").values_list("to_server", flat=True)[0])
