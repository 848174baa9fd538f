"""A server with its threads, as a program uses it."""

import os
import sys
import time
from collections import Counter
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, LeaseFromAnotherProcess
from resourcepool.models import QueueGroup, Server
from resourcepool.queues import QueueServer, administration
from tests.aliases import alias
from tests.committed import Statement
from tests.eventually import eventually
from tests.queues.conftest import Serve
from tests.queues.members import (
    NAME,
    create_queue_group,
    foreign_server,
    leave,
    owners,
    queue,
    wait_for_queues,
)
from tests.spawned import Spawner

pytestmark = pytest.mark.usefixtures("transactional_db")


class TestDescribing:
    @pytest.mark.parametrize(
        "wrong",
        [
            *({"weight": weight} for weight in (0, -1, 1_001, 1.5, True, "2", None)),
            *({"limit": limit} for limit in (0, -1, 1.5, "many")),
            *({"labels": labels} for labels in ([1], "eu", {"zone": 1}, {"": "eu"}, {"zone": ""}, {"z": "\n"})),
            {"labels": {str(n): "x" for n in range(21)}},
            *({"name": name} for name in ("", "n" * 101, "a\nb", 7)),
        ],
        ids=str,
    )
    def test_refuses_what_is_not_allowed(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadOption, match=next(iter(wrong))):
            QueueServer(NAME, **wrong)

    def test_of_an_unknown_queue_group_names_those_that_exist(self) -> None:
        create_queue_group(1, name="orders")
        create_queue_group(1, name="mails")
        with pytest.raises(
            BadOption, match=r"one of mails, orders; create one with `manage\.py resourcepool_queues add"
        ):
            QueueServer("order").start()

    def test_of_an_unknown_queue_group_says_so_when_there_is_none(self) -> None:
        with pytest.raises(BadOption, match="none exists yet"):
            QueueServer("orders").start()

    def test_of_one_that_was_not_started_says_how(self) -> None:
        with pytest.raises(BadOption, match=r"call start\(\)"):
            next(QueueServer(NAME).queues())


class TestRegistering:
    def test_goes_to_the_database_of_the_queue_groups_wherever_leases_are_routed(self, serve: Serve) -> None:
        create_queue_group(2)
        with alias("elsewhere"):
            server = serve()
            wait_for_queues(server, 2)
            with transaction.atomic(), server.held[0].guard():
                pass
            server.close()
        assert owners() == "- -"

    def test_a_second_time_after_the_end_is_refused(self, serve: Serve) -> None:
        create_queue_group(1)
        server = serve()
        server.close()
        server.close()
        with pytest.raises(BadOption, match="a new QueueServer"):
            server.start()
        assert Server.objects.count() == 0


class TestSharing:
    def test_begins_with_everything_at_the_first_and_is_even_with_the_others(self, serve: Serve) -> None:
        create_queue_group(9)
        one = serve("A")
        wait_for_queues(one, 9)
        two = serve("A")  # another server with the same name
        wait_for_queues(one, 5)
        wait_for_queues(two, 4)
        three = serve("B", weight=7)
        wait_for_queues(three, 7)
        wait_for_queues(one, 1)
        wait_for_queues(two, 1)
        three.close()
        eventually(lambda: len(one.held) + len(two.held) == 9, 20)

    def test_a_queue_only_yielded_is_not_handed_over_until_the_next_is_asked_for(self, serve: Serve) -> None:
        server = serve("A", 2)
        loop = server.queues()
        first, second = next(loop), server.held[1]
        foreign_server("B")
        administration.drain(NAME, "A")
        eventually(second.lost.is_set)
        eventually(lambda: first.is_asked_for)
        assert owners() == "A>B B"
        assert not list(loop)
        eventually(first.lost.is_set)
        assert owners() == "B B"


def of(statements: list[Statement], thread: str) -> list[str]:
    return [one.sql for one in statements if one.thread == thread]


def test_an_idle_server_costs_two_statements_a_heartbeat_and_writes_only_its_heartbeat(
    serve: Serve, statements: list[Statement]
) -> None:
    every = 0.2
    server = serve("A", 50, heartbeat_every=every)
    foreign_server("B")
    eventually(lambda: ">" not in owners(), 20)
    generation = QueueGroup.objects.get().generation
    settled: Any = server._membership
    eventually(lambda: settled._generation == generation)
    began = time.monotonic()
    statements.clear()
    eventually(lambda: len(of(statements, "resourcepool-queues")) >= 20, 30)
    sent, heartbeats = list(statements), (time.monotonic() - began) / every
    verbs = Counter(sql.split()[0] for sql in of(sent, "resourcepool-queues"))
    assert set(verbs) == {"SELECT", "UPDATE"}
    assert max(verbs.values()) <= heartbeats + 2
    assert of(sent, "resourcepool-background-default") == [], "the keeper only watches it"


def use_in_a_forked_child() -> None:
    server = QueueServer(NAME, name="A").start()
    eventually(lambda: server.held)
    mine = server.held[0]
    pid = os.fork()
    if pid == 0:
        try:
            for call in (lambda: next(server.queues()), lambda: server.held, mine.ensure_held):
                with pytest.raises(LeaseFromAnotherProcess):
                    call()
            assert not server.is_registered
            assert not mine.is_held
            server.close()
        except BaseException:  # noqa: BLE001 (shown, and told by the code)
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    mine.ensure_held()
    assert queue("1").cur_server_id is not None
    server.close()
    print("fine", flush=True)


def test_a_forked_child_is_refused_and_the_parent_goes_on(spawn: Spawner) -> None:
    create_queue_group(1)
    assert "fine" in spawn(use_in_a_forked_child).succeed()
    assert owners() == "-"


def leave_without_a_word() -> None:
    server = QueueServer(NAME, name="A").start()
    eventually(lambda: server.held)
    print("serves", flush=True)


def test_a_process_that_ends_without_closing_is_found_dead_at_once(spawn: Spawner) -> None:
    create_queue_group(2)
    spawn(leave_without_a_word).succeed()
    assert not Server.objects.alive().exists()
    b = foreign_server("B")
    assert owners() == "B B"
    leave(b)
