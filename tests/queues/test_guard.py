"""Work that commits only while its server has the queue."""

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import GuardOutsideTransaction, LeaseLost
from resourcepool.models import Server
from resourcepool.queues.serving.membership import Membership
from tests.app.models import Team
from tests.app.rows import change
from tests.queues.members import (
    expire,
    owners,
    replan,
    request_all,
    requested_ago,
    single_queue,
    take_over,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestGuard:
    def test_lets_work_commit_while_the_queue_is_this_servers(self) -> None:
        _, mine = single_queue()
        with transaction.atomic(), mine.guard():
            Team.objects.create(name="done")
        assert Team.objects.count() == 1

    def test_of_a_late_owner_fails_and_its_work_is_undone(self) -> None:
        a, mine = single_queue()
        take_over(a)
        assert mine.is_held  # it has not heard of it
        with pytest.raises(LeaseLost), transaction.atomic():
            Team.objects.create(name="too late")
            with mine.guard():
                pass
        assert Team.objects.count() == 0
        assert mine.lost.is_set()
        assert not mine.is_held

    def test_under_an_older_fence_fails_though_the_queue_is_this_servers_again(self) -> None:
        a, mine = single_queue()
        b = take_over(a)
        Server.objects.filter(pk=a.lease.pk).update(state=Server.State.UP)
        expire(b)
        replan(if_due=True)
        assert owners() == "A"
        with pytest.raises(LeaseLost), transaction.atomic(), mine.guard():
            pass

    def test_fails_when_the_server_counts_as_dead_though_nobody_has_planned_yet(self) -> None:
        a, mine = single_queue()
        expire(row_of(a))
        assert mine.is_held
        with pytest.raises(LeaseLost), transaction.atomic(), mine.guard():
            pass
        assert not mine.lost.is_set(), "nobody has taken it over"
        change(row_of(a), busy_before=DbLater(60))
        with transaction.atomic(), mine.guard():
            Team.objects.create(name="alive after all")
        assert Team.objects.count() == 1

    def test_demands_a_transaction(self) -> None:
        _, mine = single_queue()
        with pytest.raises(GuardOutsideTransaction), mine.guard():
            pass

    @pytest.mark.only("mysql", "postgresql")
    def test_holds_up_neither_the_heartbeat_nor_the_plans_of_others(self, other: BaseDatabaseWrapper) -> None:
        a, mine = single_queue()
        b = request_all(a)
        requested_ago("1", 31)
        with transaction.atomic(), mine.guard(), other.cursor() as cursor:
            cursor.execute(WAIT_NOT[connection.vendor])
            cursor.execute("UPDATE resourcepool_server SET holder = 'beats' WHERE id = %s", [a.lease.pk])
            assert cursor.rowcount == 1
            cursor.execute("UPDATE resourcepool_queuegroup SET generation = generation")
        assert owners() == "A>B"
        replan(if_due=True)
        assert owners() == "B"
        assert b.pk

    @pytest.mark.only("mysql", "postgresql")
    def test_keeps_the_queue_from_being_taken_over_before_the_commit(self) -> None:
        from tests.eventually import InBackground

        a, mine = single_queue()
        request_all(a)
        requested_ago("1", 31)
        with transaction.atomic(), mine.guard():
            outcome = InBackground(lambda: replan(if_due=True)).result(30)
            assert len(outcome.postponed) == 1
            Team.objects.create(name="in time")
        assert owners() == "A>B"
        assert Team.objects.count() == 1


WAIT_NOT = {"mysql": "SET innodb_lock_wait_timeout = 1", "postgresql": "SET lock_timeout = 1000"}


def row_of(a: Membership) -> Server:
    return Server.objects.get(pk=a.lease.pk)
