"""Each batch of claims and results is one transaction, safe to send again, and does not wait for locks."""

import pytest
from django.db import connection, transaction

from resourcepool.models import Timer
from resourcepool.taskqueue import timers
from resourcepool.taskqueue.policy import GIVEN_BACK, Result
from resourcepool.taskqueue.timers import claims, runner as due_timers
from resourcepool.taskqueue.timers.claims import ClaimedTimer
from resourcepool.taskqueue.timers.runner import DueTimer
from tests.app.rows import expire
from tests.committed import Statement
from tests.eventually import InBackground
from tests.taskqueue.timers.runners import WITHIN, due, states, timer, topic

HOLDER = "this node"


def seen(*topics: str, late: int = 0) -> list[DueTimer]:
    return due_timers.read_due("default", topics or ("t",), 100, late)


def exchange(which: list[DueTimer], holder: str = HOLDER, ends: claims.Ends = ()) -> list[ClaimedTimer]:
    rules = due_timers.read_topics("default", ["t", "u"])
    return claims.finish_and_claim("default", ends, [one.pk for one in which], rules, holder)[0]


def test_a_look_finds_what_is_due_and_when_the_next_one_is() -> None:
    due("a")
    due("b", topic="u", ago=2)
    due("not asked for", topic="v")
    timers.schedule("next", topic="t", after=60)
    found = seen("t", "u")
    assert [one.pk for one in found] == [timer("b").pk, timer("a").pk, timer("next").pk]
    assert 50_000_000 < found[2].due_in <= 60_000_000
    assert found[0].due_in < found[1].due_in < 0


def test_late_ones_are_found_only_when_there_is_room_for_them() -> None:
    due("late", ago=100)
    due("in time")
    assert [one.is_late for one in seen()] == [False]
    assert [one.is_late for one in seen(late=1)] == [True, False]


def test_one_that_is_not_due_yet_is_not_claimed_whatever_was_seen() -> None:
    timers.schedule("a", topic="t", after=60)
    assert exchange(seen()) == []
    assert states() == {"a": "pending"}


def test_one_that_somebody_has_is_not_claimed() -> None:
    due()
    which = seen()
    assert len(exchange(which)) == 1
    assert exchange(which, "another node") == []


def test_a_claim_whose_answer_was_lost_is_found_again_by_its_holder() -> None:
    due()
    which = seen()
    (first,) = exchange(which)
    (again,) = exchange(which)
    assert (again.fence, again.attempt) == (first.fence, first.attempt) == (timer().fence, 1)
    assert timer().attempts == 1


@pytest.mark.parametrize(
    "schedule",
    [
        '{"cron": "0 0 1 1 *", "tz": "Mars/Olympus"}',
        '{"cron": "whenever", "tz": "UTC"}',
        '{"moon": "full"}',
        "{",
    ],
)
def test_one_whose_schedule_this_node_cannot_read_fails_and_the_others_are_claimed(schedule: str) -> None:
    due("odd", every=60)
    due("fine", every=60)
    Timer.objects.filter(name="odd").update(schedule=schedule)
    assert [one.name for one in exchange(seen())] == ["fine"]
    assert (timer("odd").state, timer("odd").schedule, timer("odd").attempts) == ("dead", schedule, 0)
    assert timer("odd").outcome.startswith("cannot read its schedule: ")


@pytest.mark.only("mysql", "postgresql")
def test_a_locked_timer_is_passed_over() -> None:
    due("locked")
    due("free")
    with transaction.atomic():
        list(Timer.objects.filter(name="locked").select_for_update())
        claimed = InBackground(lambda: exchange(seen())).result(WITHIN)
    assert [one.name for one in claimed] == ["free"]


def test_a_late_end_changes_nothing() -> None:
    due()
    (first,) = exchange(seen())
    expire(timer())
    (second,) = exchange(seen(), "another node")
    assert (second.previous_end, second.attempt) == ("expired", 2)
    exchange([], ends=((first, Result("late")),))
    assert (timer().state, timer().fence) == ("running", second.fence)
    exchange([], ends=((second, Result("in time")),))
    exchange([], ends=((second, Result("once more")),))
    assert (timer().state, timer().outcome) == ("done", "in time")


def test_the_end_of_one_whose_lease_ran_out_counts_until_somebody_has_taken_it() -> None:
    due()
    (one,) = exchange(seen())
    expire(timer())
    exchange([], ends=((one, Result("")),))
    assert states() == {"a": "done"}


def test_a_retry_waits_and_what_was_not_begun_is_as_before() -> None:
    topic(retries=1, retry_delay=100)
    due("fails")
    due("waits")
    fails, waits = sorted(exchange(seen()), key=lambda one: one.name)
    exchange([], ends=((fails, Result("", "no")), (waits, GIVEN_BACK._replace(has_begun=False))))
    assert (timer("fails").state, timer("fails").failures, timer("fails").previous_end) == (
        "pending",
        1,
        "clean",
    )
    assert (timer("waits").attempts, timer("waits").previous_end) == (0, "")
    found = {one.pk: one.due_in for one in seen()}
    assert found[timer("fails").pk] > 90_000_000
    assert found[timer("waits").pk] <= 0


def test_a_batch_takes_a_few_statements_however_many_timers_it_has(statements: list[Statement]) -> None:
    for number in range(50):
        due(f"n{number}")
    which = seen()
    claimed = exchange(which)
    statements.clear()
    exchange([], ends=tuple((one, Result("")) for one in claimed))
    for number in range(50):
        due(f"m{number}")
    which = seen()
    before = len(statements)
    exchange(which)
    sent = [one.sql for one in statements[before:]]
    assert sum(sql.startswith("UPDATE") for sql in sent) == 1
    assert len(sent) <= 8 + (connection.vendor == "mysql")


@pytest.mark.only("mysql", "postgresql")
def test_the_end_of_one_whose_row_is_locked_is_returned_to_be_written_later() -> None:
    due("locked")
    due("free")
    ends = [(one, Result("")) for one in exchange(seen())]
    locked = timer("locked").pk

    def write() -> set[int]:
        return claims.finish_and_claim("default", ends, [], {}, HOLDER)[1]

    with transaction.atomic():
        list(Timer.objects.filter(pk=locked).select_for_update())
        assert InBackground(write).result(WITHIN) == {locked}
    assert states() == {"free": "done", "locked": "running"}
    assert write() == set()
    assert states() == {"free": "done", "locked": "done"}
