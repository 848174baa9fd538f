"""Who has which queue, through the database: by the document's tables, in one transaction, by one of many."""

from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.models import Move, Queue, Server, TaskType
from resourcepool.queues import moving
from tests.app.rows import columns
from tests.committed import Statement
from tests.eventually import at_once, in_threads
from tests.queues.crew import (
    asked_ago,
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


def asked_by_b(**settings: Any) -> tuple[Server, Server]:
    """Let A have the only queue and drain, and B ask for it."""
    made(1, **settings)
    a = stranger("A")
    b = stranger("B")
    Server.objects.filter(pk=a.pk).update(state=Server.State.DRAINING)
    replan()
    assert table() == "A>B"
    return a, b


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
        assert moves("assigned")[-1].endswith("was judged dead: no heartbeat for 30 s")

    def test_of_all_leaves_the_queues_to_nobody(self) -> None:
        made(2)
        dies(stranger("A"))
        replan(if_due=True)
        assert table() == "- -"
        assert Server.objects.count() == 0

    def test_of_the_requester_leaves_the_queue_where_it_is(self) -> None:
        a, b = asked_by_b()
        dies(b)
        moving.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
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
        assert fences == list(range(7))
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
        moving.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert columns(queue("1")) == before
        assert before["cur_server_id"] == b.pk

    def test_late_does_not_speed_up_what_somebody_asks_the_new_owner_for(self) -> None:
        a, b = asked_by_b()
        asked_ago("1", 31)
        replan(if_due=True)
        stranger("C")
        Server.objects.filter(pk=b.pk).update(state=Server.State.DRAINING)
        replan()
        moving.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert table() == "B>C"

    def test_of_a_queue_given_up_in_doubt_frees_it_under_a_new_fence(self) -> None:
        made(1)
        a = stranger("A")
        pk, before = queue("1").pk, queue("1").fence
        moving.release("default", kind().pk, "A", a.pk, [pk], [pk])
        assert table() == "-"
        assert queue("1").fence == before + 1
        replan(if_due=True)
        assert table() == "A"
        assert queue("1").fence == before + 2


class TestPlanning:
    def test_begins_with_the_row_of_the_task_type_and_says_at_the_end_that_it_is_done(
        self, statements: list[Statement]
    ) -> None:
        made(3)
        a, pk = stranger("A"), kind().pk
        dies(a)
        statements.clear()
        moving.reassign("default", pk, "A")
        ours = [plain(one.sql) for one in statements if " resourcepool_" in plain(one.sql)]
        assert [sql.split()[:2] for sql in (ours[0], ours[-1])] == [["UPDATE", "resourcepool_tasktype"]] * 2

    def test_of_many_at_once_is_done_by_one(self, statements: list[Statement]) -> None:
        made(4)
        a = stranger("A")
        stranger("B")
        generation = kind().generation
        dies(a)
        statements.clear()
        outcomes = at_once(6, lambda _: replan(if_due=True))
        assert sorted(len(outcome.changes) for outcome in outcomes) == [0, 0, 0, 0, 0, 4]
        assert kind().generation == generation + 1
        assert len([one for one in statements if "is_retiring" in one.sql]) == 1, (
            "the others need not read the queues"
        )

    def test_is_told_by_the_generation_and_leaves_who_did_it_and_when(self) -> None:
        made(1)
        before = kind()
        stranger("A")
        after = kind()
        assert (after.generation, after.assigned_by) == (before.generation + 1, "A")
        assert before.assigned_at is None
        assert after.assigned_at is not None

    def test_with_nothing_to_change_changes_nothing(self) -> None:
        made(3)
        stranger("A")
        before, moved = [columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()
        generation = kind().generation
        replan()
        assert [columns(row) for row in Queue.objects.order_by("pk")] == before
        assert (Move.objects.count(), kind().generation) == (moved, generation)

    def test_asks_the_database_as_often_for_500_queues_as_for_5(self, statements: list[Statement]) -> None:
        asked = []
        for queues in (5, 500):
            made(queues, name=f"orders {queues}")
            statements.clear()
            stranger("A", of=f"orders {queues}")
            asked.append(len(statements))
        assert max(asked) <= 20
        assert asked[0] == asked[1] or connection.vendor == "sqlite"  # which takes few parameters at once

    def test_that_fails_in_the_middle_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made(3)
        a = stranger("A")
        dies(a)
        before = [columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()

        def fail(*_: object, **__: object) -> None:
            raise IntegrityError("no")

        monkeypatch.setattr(moving, "_finish", fail)
        with pytest.raises(IntegrityError):
            replan()
        assert ([columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()) == before

    def test_of_a_task_type_that_is_gone_says_so(self) -> None:
        made(0)
        pk = kind().pk
        kind().delete()
        with pytest.raises(TaskType.DoesNotExist):
            moving.reassign("default", pk, "A")

    def test_and_joining_by_many_at_once_leaves_every_queue_with_one(self) -> None:
        made(12)
        in_threads([lambda name=name: stranger(name) for name in "ABCDEF"])
        owners = table().split()
        assert len(owners) == 12
        assert not any(owner.startswith(("-", "?")) for owner in owners)
        wanted = [owner.rpartition(">")[2] for owner in owners]
        assert sorted(wanted.count(name) for name in "ABCDEF") == [2] * 6


@pytest.mark.only("mysql", "postgresql")
class TestALockedQueue:
    """Somebody's ``guard`` keeps it so; on SQLite whoever writes has the whole file."""

    def test_is_left_and_done_later(self, other: BaseDatabaseWrapper) -> None:
        made(3)
        a = stranger("A")
        stranger("B")
        lock(other, "1")
        dies(a)
        outcome = replan(if_due=True)
        assert [change.queue.queue_id for change in outcome.left] == ["1"]
        assert table() == "A B B"
        assert kind().is_assignment_due
        other.rollback()
        replan(if_due=True)
        assert table() == "B B B"
        assert not kind().is_assignment_due
        assert not Server.objects.filter(pk=a.pk).exists()

    def test_is_not_handed_over(self, other: BaseDatabaseWrapper) -> None:
        a, _ = asked_by_b()
        lock(other, "1")
        outcome = moving.release("default", kind().pk, "A", a.pk, [queue("1").pk], [])
        assert len(outcome.left) == 1
        assert table() == "A>B"
        assert kind().is_assignment_due
        other.rollback()


def lock(other: BaseDatabaseWrapper, queue_id: str) -> None:
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("UPDATE resourcepool_queue SET fence = fence WHERE queue_id = %s", [queue_id])


def plain(sql: str) -> str:
    return sql.replace("`", "").replace('"', "")


def moved_to() -> str:
    return str(Move.objects.order_by("-pk").values_list("to_server", flat=True)[0])
