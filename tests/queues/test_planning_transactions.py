"""A plan and its changes are one transaction; of many servers that notice that it is due, one plans."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import ClaimInTransaction
from resourcepool.models import Move, Queue, Server
from resourcepool.queues import reassignment
from tests.aliases import alias
from tests.app.rows import columns
from tests.committed import Statement
from tests.eventually import at_once, in_threads
from tests.queues.members import (
    create_queue_group,
    end_postponement,
    expire,
    foreign_server,
    lock,
    owners,
    queue,
    read_queue_group,
    replan,
    requested_by_b,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestPlanning:
    def test_begins_with_the_row_of_the_queue_group_and_says_at_the_end_that_it_is_done(
        self, statements: list[Statement]
    ) -> None:
        create_queue_group(3)
        a, pk = foreign_server("A"), read_queue_group().pk
        expire(a)
        statements.clear()
        reassignment.reassign("default", pk, "A")
        ours = [plain(one.sql) for one in statements if " resourcepool_" in plain(one.sql)]
        assert [sql.split()[:2] for sql in (ours[0], ours[-1])] == [["UPDATE", "resourcepool_queuegroup"]] * 2

    def test_of_many_at_once_is_done_by_one(self, statements: list[Statement]) -> None:
        create_queue_group(4)
        a = foreign_server("A")
        foreign_server("B")
        generation = read_queue_group().generation
        expire(a)
        statements.clear()
        outcomes = at_once(6, lambda _: replan(if_due=True))
        assert sorted(len(outcome.changes) for outcome in outcomes) == [0, 0, 0, 0, 0, 4]
        assert read_queue_group().generation == generation + 1
        assert len([one for one in statements if "is_retiring" in one.sql]) == 1, (
            "the others need not read the queues"
        )

    def test_is_told_by_the_generation_and_leaves_who_did_it_and_when(self) -> None:
        create_queue_group(1)
        before = read_queue_group()
        foreign_server("A")
        after = read_queue_group()
        assert (after.generation, after.assigned_by) == (before.generation + 1, "A")
        assert before.assigned_at is None
        assert after.assigned_at is not None

    def test_with_nothing_to_change_changes_nothing(self) -> None:
        create_queue_group(3)
        foreign_server("A")
        before, moved = [columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()
        generation = read_queue_group().generation
        replan()
        assert [columns(row) for row in Queue.objects.order_by("pk")] == before
        assert (Move.objects.count(), read_queue_group().generation) == (moved, generation)

    def test_asks_the_database_as_often_for_500_queues_as_for_5(self, statements: list[Statement]) -> None:
        asked = []
        for queues in (5, 500):
            create_queue_group(queues, name=f"orders {queues}")
            statements.clear()
            foreign_server("A", of=f"orders {queues}")
            asked.append(len(statements))
        assert max(asked) <= 20
        assert asked[0] == asked[1] or connection.vendor == "sqlite"  # which takes few parameters at once

    def test_that_fails_in_the_middle_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        create_queue_group(3)
        a = foreign_server("A")
        expire(a)
        before = [columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()

        def fail(*_: object, **__: object) -> None:
            raise IntegrityError("no")

        monkeypatch.setattr(reassignment, "_finish", fail)
        with pytest.raises(IntegrityError):
            replan()
        assert ([columns(row) for row in Queue.objects.order_by("pk")], Move.objects.count()) == before

    def test_and_joining_by_many_at_once_leaves_every_queue_with_one(self) -> None:
        create_queue_group(12)
        in_threads([lambda name=name: foreign_server(name) for name in "ABCDEF"])
        final = owners().split()
        assert len(final) == 12
        assert not any(owner.startswith(("-", "?")) for owner in final)
        wanted = [owner.rpartition(">")[2] for owner in final]
        assert sorted(wanted.count(name) for name in "ABCDEF") == [2] * 6


def repeatable_read() -> Any:
    if connection.vendor == "mysql":
        return "repeatable read"
    from django.db.backends.postgresql.psycopg_any import IsolationLevel

    return IsolationLevel.REPEATABLE_READ


def take_over_at_once(using: str) -> reassignment.Outcome:
    return reassignment.reassign(using, read_queue_group().pk, "somebody")


def release_all_of_nobody(using: str) -> reassignment.Outcome:
    return reassignment.release(using, read_queue_group().pk, "somebody", 0, [], [])


@pytest.mark.parametrize("change", [take_over_at_once, release_all_of_nobody])
class TestInsideATransactionOfTheCaller:
    @pytest.mark.only("mysql", "postgresql")
    def test_that_sees_only_what_was_before_nothing_is_changed(self, change: Any) -> None:
        """Otherwise a server that is presumed dead meanwhile would look alive, and a new server would be missing."""
        create_queue_group(2)
        expire(foreign_server("A"))
        with alias("strange", leased=False, OPTIONS={"isolation_level": repeatable_read()}) as using:
            with transaction.atomic(using=using), pytest.raises(ClaimInTransaction, match="READ COMMITTED"):
                change(using)
            assert owners() == "A A"
            change(using)  # outside of one

    def test_that_sees_what_others_commit_the_change_is_its_own(self, change: Any) -> None:
        create_queue_group(2)
        expire(foreign_server("A"))
        with transaction.atomic():
            change("default")
            transaction.set_rollback(True)
        assert owners() == "A A"


@pytest.mark.only("mysql", "postgresql")
class TestALockedQueue:
    """A ``guard`` keeps it locked; on SQLite a writer locks the whole file."""

    def test_is_left_and_done_later(self, other: BaseDatabaseWrapper) -> None:
        create_queue_group(3)
        a = foreign_server("A")
        foreign_server("B")
        lock(other, "1")
        expire(a)
        outcome = replan(if_due=True)
        assert [change.queue.queue_id for change in outcome.postponed] == ["1"]
        assert owners() == "A B B"
        assert read_queue_group().is_assignment_due
        other.rollback()
        end_postponement()
        replan(if_due=True)
        assert owners() == "B B B"
        assert not read_queue_group().is_assignment_due
        assert not Server.objects.filter(pk=a.pk).exists()

    def test_is_not_handed_over(self, other: BaseDatabaseWrapper) -> None:
        a, _ = requested_by_b()
        lock(other, "1")
        outcome = reassignment.release("default", read_queue_group().pk, "A", a.pk, [queue("1").pk], [])
        assert len(outcome.postponed) == 1
        assert owners() == "A>B"
        assert read_queue_group().is_assignment_due
        other.rollback()


def plain(sql: str) -> str:
    return sql.replace("`", "").replace('"', "")
