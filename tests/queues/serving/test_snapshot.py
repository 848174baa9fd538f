"""The check of a server with every heartbeat, in one statement."""

import math

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import QueueGroup, Server
from resourcepool.queues.planning.changes import MAX_COMMIT_DELAY
from resourcepool.queues.serving.snapshot import QueueGroupSnapshot, read_own_queues, read_snapshot
from tests.committed import Statement
from tests.queues.members import (
    TTL,
    create_queue_group,
    expire,
    foreign_server,
    leave,
    queue,
    read_queue_group,
    requested_ago,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def seen() -> QueueGroupSnapshot:
    return read_snapshot("default", read_queue_group().pk)


def test_without_servers_no_plan_will_be_due() -> None:
    create_queue_group(1)
    assert seen().plan_in == math.inf


def test_a_plan_is_due_when_the_next_server_would_be_judged_dead() -> None:
    create_queue_group(1)
    foreign_server("A")
    b = foreign_server("B")
    assert 50 < seen().plan_in <= 60
    Server.objects.filter(pk=b.pk).update(busy_before=DbLater(20))
    assert 10 < seen().plan_in <= 20
    expire(b)
    assert seen().plan_in == 0


def test_a_plan_is_due_when_the_longest_asked_is_late() -> None:
    create_queue_group(4, handover_timeout=40)
    foreign_server("A")
    foreign_server("B")
    assert 30 < seen().plan_in <= 40
    requested_ago("2" if queue("2").requested_at else "3", 25)
    assert 5 < seen().plan_in <= 15


def test_a_late_one_is_not_due_before_its_owner_would_have_stopped_by_itself() -> None:
    create_queue_group(2, handover_timeout=TTL)
    foreign_server("A")
    foreign_server("B")
    assert TTL < seen().plan_in <= TTL + MAX_COMMIT_DELAY


def test_a_plan_is_due_at_once_when_somebody_has_noted_so() -> None:
    create_queue_group(1)
    QueueGroup.objects.update(is_assignment_due=True)
    assert seen().plan_in == 0


def test_other_queue_groups_do_not_matter() -> None:
    create_queue_group(1)
    create_queue_group(1, name="other")
    expire(foreign_server("A", of="other"))
    assert seen().plan_in == math.inf


def test_settings_and_the_generation_are_seen_as_they_are_now() -> None:
    create_queue_group(1)
    QueueGroup.objects.update(
        is_paused=True, heartbeat_every=3, reload_every=1, handover_timeout=9, generation=7
    )
    found = seen()
    assert (found.is_paused, found.heartbeat_every, found.reload_every) == (True, 3, 1)
    assert (found.handover_timeout, found.generation) == (9, 7)


def test_it_takes_one_statement_however_many_there_are(statements: list[Statement]) -> None:
    create_queue_group(200)
    pk = read_queue_group().pk
    for name in "ABC":
        foreign_server(name)
    statements.clear()
    read_snapshot("default", pk)
    assert len(statements) == 1


def test_one_that_is_gone_is_told() -> None:
    pk = create_queue_group(1).pk
    with pytest.raises(QueueGroup.DoesNotExist):
        read_snapshot("default", pk + 1)


def test_a_server_loads_what_it_has_and_what_it_has_asked_for(statements: list[Statement]) -> None:
    create_queue_group(4)
    a = foreign_server("A")
    b = foreign_server("B")
    pk = read_queue_group().pk
    statements.clear()
    assert [one.queue_id for one, _ in read_own_queues("default", pk, a.pk)] == ["1", "2", "3", "4"]
    assert len(statements) == 1
    assert {(one.cur, one.req) for one, _ in read_own_queues("default", pk, b.pk)} == {(a.pk, b.pk)}
    leave(b)
    assert read_own_queues("default", pk, b.pk) == []
