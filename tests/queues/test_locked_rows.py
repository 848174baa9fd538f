"""Rows that others keep locked: by the work that a user guards, and by a planner that stands still."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.models import Queue, Server
from resourcepool.queues import administration, reassignment
from resourcepool.queues.serving.membership import Membership
from tests.committed import Statement
from tests.eventually import InBackground, eventually
from tests.queues.members import NAME, dies, handles, joined, kind, made, replan, table
from tests.spawned import Spawner

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("transactional_db")]


@pytest.fixture
def guarding() -> Iterator[Membership]:
    """Server A of A and B, each with two queues; one of A's threads is in a guarded transaction on queue 1."""
    made(4)
    a = joined("A")
    a.turn()
    end, is_open, queue = threading.Event(), threading.Event(), handles(a)["1"]

    def work() -> None:
        with suppress(LeaseLost), queue.working(), transaction.atomic(), queue.guard():
            is_open.set()
            end.wait(60)

    a.end_of_work = end  # type: ignore[attr-defined]
    thread = InBackground(work)
    assert is_open.wait(20)
    yield a
    end.set()
    thread.result()


class TestAGuardedTransaction:
    def test_does_not_hold_up_the_heartbeat_of_its_server(self, guarding: Membership) -> None:
        seen = guarding.lease.trust.sent_at
        eventually(lambda: guarding.turn() and guarding.lease.trust.sent_at > seen)

    def test_does_not_hold_up_the_plans_of_other_queues(self, guarding: Membership) -> None:
        b = joined("B")
        guarding.turn()
        b.turn()
        assert sorted(table().split()) == ["A", "A", "B", "B"]

    def test_of_a_dead_server_keeps_nothing_from_the_others_but_its_own_queue(
        self, guarding: Membership
    ) -> None:
        b = joined("B")
        dies(Server.objects.get(pk=guarding.lease.pk))
        b.turn()
        assert table() == "A B B B"
        assert Server.objects.filter(pk=guarding.lease.pk).exists(), "or its queue would be nobody's"
        guarding.end_of_work.set()  # type: ignore[attr-defined]
        eventually(lambda: replan() and table() == "B B B B")
        assert not Server.objects.filter(pk=guarding.lease.pk).exists()
        assert not kind().is_assignment_due

    @pytest.mark.parametrize("change", [partial(administration.pin, server="A"), administration.remove_queues])
    def test_is_no_reason_for_an_operator_to_keep_the_servers_waiting(
        self, guarding: Membership, change: Any, statements: list[Statement]
    ) -> None:
        before = columns()
        with pytest.raises(DatabaseUnavailable, match="guard"):
            change(NAME, ["1", "2"])
        assert columns() == before
        assert not [one.sql for one in statements if one.sql.startswith("UPDATE") and "_queue" in one.sql]
        assert change(NAME, ["2"]) == 1


def columns() -> list[Any]:
    return list(Queue.objects.order_by("pk").values_list("queue_id", "pin", "is_retiring"))


class TestAPlannerThatStandsStillInTheMiddleOfItsTransaction:
    def test_is_thrown_out_so_that_others_can_plan_and_is_told(self, spawn: Spawner) -> None:
        made(4)
        b = joined("B")
        planner = spawn(plan_and_stop, kind().pk)
        planner.line("stops")
        dies(Server.objects.get(pk=b.lease.pk))
        eventually(plans)
        assert table() == "- - - -"
        planner.send(signal.SIGCONT)
        assert "DatabaseUnavailable" in planner.line("told")
        planner.succeed()

    def test_holds_up_no_heartbeat_and_no_look(self, spawn: Spawner) -> None:
        made(4)
        a = joined("A")
        a.turn()
        planner = spawn(plan_and_stop, kind().pk)
        planner.line("stops")
        a.turn()
        seen = a.lease.trust.sent_at
        eventually(lambda: a.turn() and a.lease.trust.sent_at > seen)
        handles(a)["1"].ensure_held()
        with transaction.atomic(), handles(a)["1"].guard():
            pass


def plans() -> bool:
    try:
        return bool(replan(if_due=True).changes)
    except DatabaseUnavailable:
        return False


def plan_and_stop(queue_group: int) -> None:
    """Begin a plan, and stand still in the middle of it."""

    def stand_still(_: object) -> None:
        print("stops", flush=True)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    try:
        reassignment.reassign("default", queue_group, "somebody stuck", first=stand_still)
    except DatabaseUnavailable:
        print("told: DatabaseUnavailable", flush=True)
