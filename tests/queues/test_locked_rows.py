"""Rows that are kept locked: by guarded work, and by a paused planner."""

import re
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
from tests.queues.members import (
    NAME,
    create_queue_group,
    expire,
    handles,
    join,
    owners,
    read_queue_group,
    replan,
    sole_server,
)
from tests.spawned import Spawner

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("transactional_db")]


@pytest.fixture
def guarding() -> Iterator[Membership]:
    """Server A of A and B, each with two queues; one of A's threads is in a guarded transaction on queue 1."""
    a = sole_server(4)
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
        seen = guarding.lease._trust.sent_at
        eventually(lambda: guarding.turn() and guarding.lease._trust.sent_at > seen)

    def test_of_a_dead_server_keeps_nothing_from_the_others_but_its_own_queue(
        self, guarding: Membership
    ) -> None:
        b = join("B")
        expire(Server.objects.get(pk=guarding.lease.pk))
        b.turn()
        assert owners() == "A B B B"
        assert Server.objects.filter(pk=guarding.lease.pk).exists(), "or its queue would be nobody's"
        guarding.end_of_work.set()  # type: ignore[attr-defined]
        eventually(lambda: replan() and owners() == "B B B B")
        assert not Server.objects.filter(pk=guarding.lease.pk).exists()
        assert not read_queue_group().is_assignment_due

    @pytest.mark.parametrize("change", [partial(administration.pin, server="A"), administration.remove_queues])
    def test_is_no_reason_for_an_operator_to_keep_the_servers_waiting(
        self, guarding: Membership, change: Any, statements: list[Statement]
    ) -> None:
        before = columns()
        with pytest.raises(DatabaseUnavailable, match="guard"):
            change(NAME, ["1", "2"])
        assert columns() == before
        assert not [one.sql for one in statements if re.match(r"UPDATE \S*_queue\b", one.sql)]
        assert change(NAME, ["2"]) == 1


def columns() -> list[Any]:
    return list(Queue.objects.order_by("pk").values_list("queue_id", "pin", "is_retiring"))


class TestAPlannerThatStandsStillInTheMiddleOfItsTransaction:
    def test_is_thrown_out_so_that_others_can_plan_and_is_told(self, spawn: Spawner) -> None:
        create_queue_group(4)
        b = join("B")
        planner = spawn(plan_and_stop, read_queue_group().pk)
        planner.line("stops")
        expire(Server.objects.get(pk=b.lease.pk))
        eventually(plans)
        assert owners() == "- - - -"
        planner.send(signal.SIGCONT)
        assert "DatabaseUnavailable" in planner.line("told")
        planner.succeed()

    def test_holds_up_no_heartbeat_and_no_look(self, spawn: Spawner) -> None:
        a = sole_server(4)
        planner = spawn(plan_and_stop, read_queue_group().pk)
        planner.line("stops")
        a.turn()
        seen = a.lease._trust.sent_at
        eventually(lambda: a.turn() and a.lease._trust.sent_at > seen)
        handles(a)["1"].ensure_held()
        with transaction.atomic(), handles(a)["1"].guard():
            pass


def plans() -> bool:
    try:
        return bool(replan(if_due=True).changes)
    except DatabaseUnavailable:
        return False


def plan_and_stop(queue_group: int) -> None:
    """Begin a plan, and pause in the middle of it."""

    def stand_still(_: object) -> None:
        print("stops", flush=True)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    try:
        reassignment.reassign("default", queue_group, "somebody stuck", first=stand_still)
    except DatabaseUnavailable:
        print("told: DatabaseUnavailable", flush=True)
