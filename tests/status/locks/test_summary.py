"""How all locks stand together, and what is wrong with them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from resourcepool.management.commands.resourcepool_status import alarms_as_text
from resourcepool.models import RWLockPermit
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.alarms import alarms
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import locks
from resourcepool.status.locks.summary import MAX_NAMES_SHOWN, first_holders, lock_alarms, summary
from tests.status.locks.conftest import A, B, C, held_by, later, lock, permits, waits

pytestmark = pytest.mark.django_db


def test_nothing_is_nothing() -> None:
    found = summary()
    assert (found.holders, found.waiters, found.longest_wait, found.waited, found.cycles) == (
        0,
        0,
        None,
        [],
        (),
    )
    assert list(lock_alarms(found, 60)) == []


@pytest.mark.usefixtures("crowd")
def test_it_counts_who_holds_and_who_waits_and_conditions_are_waited_for_by_nature() -> None:
    found = summary()
    assert (found.holders, found.waiters, found.has_more) == (5, 3, False)
    assert [one.called for one in found.waited] == ["lock busy", "semaphore busy"]
    assert 40 <= (found.longest_wait or 0) < 4_000


@pytest.mark.usefixtures("crowd")
def test_kinds_that_are_not_asked_for_are_not_told() -> None:
    lock("next", B)
    waits("lock", "next", A)
    found = summary([LockKind.SEMAPHORE])
    assert ([one.called for one in found.waited], found.holders, found.cycles) == (["semaphore busy"], 2, ())
    assert len(summary().cycles) == 1


def test_the_intent_to_upgrade_is_no_permit_and_no_name() -> None:
    RWLockPermit.objects.create(key=RWLockPermit.intent_of("catalogue"), name="", **held_by(A))
    assert summary().holders == 0
    assert locks().locks == locks(held=True).locks == []


def test_a_circle_that_lasts_is_an_alarm_and_one_of_a_moment_is_none() -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A, waited=400)
    ticket = waits("lock", "orders", B, waited=100)
    (alarm,) = lock_alarms(summary(), 3_600)
    assert (alarm.kind, alarm.about, alarm.is_severe) == (AlarmKind.DEADLOCK, "locks: lock orders", True)
    assert "web-1/4711/worker-1 holds lock orders and waits for lock stock" in alarm.text
    ticket.delete()
    waits("lock", "orders", B, waited=0)
    assert list(lock_alarms(summary(), 3_600)) == []


def test_a_deadlock_is_one_alarm_and_its_waits_are_none() -> None:
    lock("orders", A)
    lock("stock", B)
    lock("other", B)
    waits("lock", "stock", A, waited=400)
    waits("lock", "orders", B, waited=400)
    waits("lock", "other", "web-1/4711/worker-2/3", waited=400)
    deadlock, wait = lock_alarms(summary(), 300)
    assert (deadlock.kind, wait.kind, wait.about) == (
        AlarmKind.DEADLOCK,
        AlarmKind.LOCK_WAIT,
        "locks: lock other",
    )


def test_the_command_that_ends_a_deadlock_is_not_cut_off_in_a_shell() -> None:
    names = [f"lock-with-a-long-name-{number}" for number in range(10)]
    for number, name in enumerate(names):
        holder = f"web-{number}/4711/worker-{number}/00c0ffee.{number}@{number + 1}"
        lock(name, holder)
        waits("lock", names[number - 1], holder, waited=100)
    shown = str(alarms_as_text(list(lock_alarms(summary(), 3_600)))[-1])
    assert shown.endswith("--kind lock --reason ..`")


def test_the_alarm_of_a_deadlock_has_the_command_that_ends_it() -> None:
    permits("semaphore", "two words", [A])
    lock("stock", B)
    waits("lock", "stock", A, waited=100)
    waits("semaphore", "two words", B, waited=100)
    (alarm,) = lock_alarms(summary(), 3_600)
    assert alarm.text.endswith("`manage.py resourcepool_locks revoke 'two words' --kind semaphore --reason ..`")


def test_two_kinds_of_one_name_are_two_alarms() -> None:
    for kind in ("lock", "semaphore"):
        waits(kind, "orders", B, waited=7_200)
    assert {one.pool for one in lock_alarms(summary(), 300)} == {
        "locks: lock orders",
        "locks: semaphore orders",
    }


def test_a_wait_longer_than_the_limit_is_an_alarm_that_names_the_holder() -> None:
    lock("orders", A)
    waits("lock", "orders", B, waited=7_200)
    (alarm,) = lock_alarms(summary(), 300)
    assert (alarm.kind, alarm.is_severe) == (AlarmKind.LOCK_WAIT, True)
    assert str(alarm) == "locks: lock orders: waiters: 1, the first for 2 h; held by web-1/4711/worker-1."
    waits("lock", "orders", C)
    (alarm,) = lock_alarms(summary(), 300)
    assert "waiters: 2, the first for 2 h;" in alarm.text
    assert AlarmKind.LOCK_WAIT in {one.kind for one in alarms()}
    assert list(lock_alarms(summary(), 100_000)) == []


def test_an_alarm_does_not_name_as_holder_who_waits_for_more_permits() -> None:
    permits("semaphore", "licence", [A, later(B), later(B)])
    waits("semaphore", "licence", B, count=3, waited=7_200)
    (alarm,) = lock_alarms(summary(), 300)
    assert str(alarm) == "locks: semaphore licence: waiters: 1, the first for 2 h; held by web-1/4711/worker-1."


@pytest.mark.parametrize("kind", LockKind)
def test_an_alarm_says_the_kind_as_lists_do_and_in_the_language_of_who_reads(kind: LockKind) -> None:
    alarm = Alarm(AlarmKind.LOCK_WAIT, f"locks: {kind.value} two words", "")
    assert alarm.about == f"locks: {kind.called('two words')}"
    with translation.override("zh-hans"):
        assert kind.called("two words") in alarm.about
        assert kind.called("two words") != f"{kind.value} two words"


def test_the_longest_waits_are_shown_of_many_in_as_many_statements() -> None:
    counts = []
    for many in (2, 30):
        for number in range(many):
            for kind in ("lock", "semaphore", "rwlock"):
                waits(kind, f"{many}-{number}", B, waited=number * 10)
        with CaptureQueriesContext(connection) as sent:
            found = summary()
        counts.append(len(sent))
    assert counts[0] + 1 == counts[1] <= 20  # and all who wait are counted
    assert (len(found.waited), found.has_more, found.waiters) == (MAX_NAMES_SHOWN, True, 96)
    assert found.waited[0].name == "30-29"


def test_a_writer_is_one_holder_and_a_thread_is_named_once() -> None:
    permits("rwlock", "catalogue", [A, A, A, A])
    permits("semaphore", "licence", [B, later(B)])
    found = summary()
    assert found.holders == 3
    waits("semaphore", "licence", C, waited=7_200)
    assert first_holders(summary().waited[0]) == "web-1/4711/worker-2"
