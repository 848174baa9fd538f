"""Who has which queue, through the database: by the document's tables, by death, by deadline."""

from typing import Any

import pytest

from resourcepool.models import Move, Server
from resourcepool.queues import reassignment
from tests.app.rows import columns
from tests.queues.members import (
    asked_ago,
    asked_by_b,
    dies,
    joined,
    kind,
    left,
    made,
    moves,
    queue,
    replan,
    stranger,
    table,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestTheDocument:
    def test_its_tables_hold_line_by_line(self) -> None:
        made(5, strategy="round_robin")
        a = joined("A")
        assert table() == "A A A A A"
        stranger("B")
        assert table() == "A A>B A A>B A"
        stranger("C")
        assert table() == "A A>B A>C A A>B"
        stranger("D")
        assert table() == "A A>B A>C A>D A"
        a.turn()
        assert table() == "A B C D A"

    def test_a_server_that_has_asked_gets_nothing_until_its_owner_releases(self) -> None:
        made(2)
        stranger("A")
        before = [columns(queue(each))["fence"] for each in ("1", "2")]
        stranger("B")
        assert table() == "A A>B"
        assert [columns(queue(each))["fence"] for each in ("1", "2")] == before

    def test_with_more_servers_than_queues_some_have_none(self) -> None:
        made(1)
        servers = [stranger(name) for name in "ABC"]
        assert table() == "A"
        left(servers[0])
        assert table() in {"B", "C"}


class TestADeath:
    def test_frees_the_queues_for_whoever_plans_next(self) -> None:
        made(4)
        a, _ = stranger("A"), stranger("B")
        dies(a)
        replan(if_due=True)
        assert table() == "B B B B"
        assert not Server.objects.filter(pk=a.pk).exists()
        assert moves("assigned")[-1].endswith("was judged dead: no heartbeat for 20 s")

    def test_of_all_leaves_the_queues_to_nobody(self) -> None:
        made(2)
        dies(stranger("A"))
        replan(if_due=True)
        assert table() == "- -"
        assert Server.objects.count() == 0

    def test_of_the_requester_leaves_the_queue_where_it_is(self) -> None:
        a, b = asked_by_b()
        dies(b)
        reassignment.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert table() == "A"
        assert columns(queue("1"))["requested_at"] is None
        replan(if_due=True)
        assert table() == "A"

    def test_every_new_owner_has_a_new_fence(self) -> None:
        made(1)
        fences = [queue("1").fence]
        for _ in range(3):
            server = stranger("A")
            fences.append(queue("1").fence)
            dies(server)
            replan(if_due=True)
            fences.append(queue("1").fence)
        assert fences == list(range(fences[0], fences[0] + 7))
        assert list(Move.objects.order_by("pk").values_list("fence", flat=True)) == fences[1:]


class TestTakingOver:
    def test_happens_when_the_owner_is_late_and_under_a_new_fence(self) -> None:
        a, _ = asked_by_b()
        asked_ago("1", 31)
        before = queue("1").fence
        replan(if_due=True)
        assert table() == "B"
        assert queue("1").fence == before + 1
        assert columns(queue("1"))["requested_at"] is None
        assert (
            moves()[-1]
            == f"taken_over 1 A #{a.pk}>{moved_to()}: A #{a.pk} did not finish its work on it in time"
        )

    def test_does_not_happen_before(self) -> None:
        asked_by_b()
        asked_ago("1", 25)
        replan(if_due=True)
        assert table() == "A>B"

    def test_does_not_happen_before_an_owner_with_a_longer_interval_would_have_stopped(self) -> None:
        asked_by_b()
        Server.objects.filter(name="A").update(ttl=60)
        asked_ago("1", 40)
        replan(if_due=True)
        assert table() == "A>B"

    def test_is_not_put_off_by_being_asked_for_somebody_else(self) -> None:
        _, b = asked_by_b()
        asked_ago("1", 20)
        before = columns(queue("1"))["requested_at"]
        stranger("C")
        dies(b)
        replan(if_due=True)
        assert table() == "A>C"
        assert columns(queue("1"))["requested_at"] == before


class TestReleasing:
    def test_gives_only_what_is_still_this_servers(self) -> None:
        a, b = asked_by_b()
        asked_ago("1", 31)
        replan(if_due=True)
        before = columns(queue("1"))
        reassignment.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert columns(queue("1")) == before
        assert before["cur_server_id"] == b.pk

    def test_late_does_not_speed_up_what_somebody_asks_the_new_owner_for(self) -> None:
        a, b = asked_by_b()
        asked_ago("1", 31)
        replan(if_due=True)
        stranger("C")
        Server.objects.filter(pk=b.pk).update(state=Server.State.DRAINING)
        replan()
        reassignment.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert table() == "B>C"

    def test_of_a_queue_given_up_in_doubt_frees_it_under_a_new_fence(self) -> None:
        made(1)
        a = stranger("A")
        pk, before = queue("1").pk, queue("1").fence
        reassignment.release("default", kind().pk, "A", a.pk, [pk], [pk])
        assert table() == "-"
        assert queue("1").fence == before + 1
        replan(if_due=True)
        assert table() == "A"
        assert queue("1").fence == before + 2

    def test_notes_who_has_a_queue_now_and_since_when_the_giver_has_none(self) -> None:
        a, b = asked_by_b()
        assert idle_since(a) is None
        assert idle_since(b) is not None
        reassignment.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert idle_since(a) is not None
        assert idle_since(b) is None


def idle_since(server: Server) -> Any:
    return Server.objects.values_list("idle_since", flat=True).get(pk=server.pk)


def moved_to() -> str:
    return str(Move.objects.order_by("-pk").values_list("to_server", flat=True)[0])
