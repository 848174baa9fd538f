"""One term of a consumer, turn by turn: all that it writes is written only while it leads."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.threads import Wakeup
from resourcepool.elections import Election, Term
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import GivenBack, handler, submit
from resourcepool.taskqueue.consumer import StreamWorker
from resourcepool.taskqueue.running_task import RunningTask
from resourcepool.taskqueue.worker_loop import ProcessMustExit, WorkerLoop
from tests.app.rows import steal
from tests.committed import Statement
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, Gate, states, stream, task


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Handle every task of type "gate"; let them end at the end of the test."""
    gate = Gate()
    handler("gate")(gate)
    yield gate
    gate.may_end.set()


def leads(**options: Any) -> StreamWorker:
    """Return the term of a leader of a new stream."""
    stream(**options)
    term: Term = Election("oracle", Stream).campaign()
    return StreamWorker("oracle", term, Wakeup())


def loop(worker: StreamWorker) -> WorkerLoop[RunningTask]:
    return WorkerLoop("stream oracle", worker, Wakeup())


def run_once(worker: StreamWorker, *, may_begin: bool = True) -> None:
    loop(worker).run_once(may_begin=may_begin)


def turned(worker: StreamWorker) -> dict[str, str]:
    """Have it turn; return the states of the tasks."""
    run_once(worker)
    return states()


def begin(_: StreamWorker) -> None:
    handler("note")(lambda _: None)
    submit("oracle", "note", key="a")


def take_over(worker: StreamWorker) -> None:
    begin(worker)
    Task.objects.update(state="running", term=1)


def end(worker: StreamWorker) -> None:
    begin(worker)
    run_once(worker)
    eventually(lambda: not worker.in_hand._ended.empty(), WITHIN)


@pytest.mark.parametrize("prepare", [begin, take_over, end])
def test_who_does_not_lead_any_more_begins_and_takes_over_and_ends_nothing(prepare: Any) -> None:
    former = leads()
    prepare(former)
    before = states()
    steal(Stream.objects.get(), holder="the next one")
    with pytest.raises(LeaseLost):
        former.take_over() if prepare is take_over else run_once(former)
    assert states() == before


@pytest.mark.parametrize(("is_paused", "may_begin"), [(True, True), (False, False)])
def test_nothing_begins_while_it_is_paused_or_is_to_stop(gate: Gate, is_paused: bool, may_begin: bool) -> None:
    worker = leads(is_paused=is_paused)
    submit("oracle", "gate", key="a")
    run_once(worker, may_begin=may_begin)
    assert states() == {"a": "ready"}


def test_in_a_strict_stream_only_the_first_task_is_looked_at(gate: Gate, statements: list[Statement]) -> None:
    worker = leads()
    for key in "abc":
        submit("oracle", "gate", key=key)
    statements.clear()
    turned(worker)
    looks = [one.sql for one in statements if one.sql.startswith("SELECT") and "crashes" in one.sql]
    assert [one for one in looks if "max_crashes" not in one]
    assert all("LIMIT 1" in one and "LIMIT 16" not in one for one in looks)


def test_a_task_that_begins_at_once_was_looked_for_once(gate: Gate, statements: list[Statement]) -> None:
    worker = leads()
    submit("oracle", "gate", key="a")
    statements.clear()
    assert turned(worker) == {"a": "running"}
    assert len([one for one in statements if one.sql.startswith("SELECT") and "attempts" in one.sql]) == 1


def test_tasks_that_end_alike_are_written_and_the_next_ones_begun_by_one_statement_each(
    gate: Gate, statements: list[Statement]
) -> None:
    worker = leads(lanes=3)
    for key in "abcdef":
        submit("oracle", "gate", key=key, lane=key)
    turned(worker)
    gate.may_end.set()
    eventually(lambda: worker.in_hand._ended.qsize() == 3, WITHIN)
    statements.clear()
    assert turned(worker) == {**dict.fromkeys("abc", "done"), **dict.fromkeys("def", "running")}
    table = connection.ops.quote_name(Task._meta.db_table)
    assert len([one for one in statements if one.sql.startswith(f"UPDATE {table}")]) == 2
    eventually(lambda: worker.in_hand._ended.qsize() == 3, WITHIN)


def test_a_task_that_failed_and_one_that_is_done_end_in_one_turn_each_in_its_own_way(gate: Gate) -> None:
    worker = leads(lanes=3, on_failure="dead-letter")
    handler("fail")(lambda task: task.key == "done" or False)
    for key in ("failed", "done"):
        submit("oracle", "fail", key=key, lane=key)
    turned(worker)
    eventually(lambda: worker.in_hand._ended.qsize() == 2, WITHIN)
    assert turned(worker) == {"failed": "dead", "done": "done"}
    assert (task("failed").failures, task("done").failures) == (1, 0)


def test_a_task_that_changes_after_it_was_seen_does_not_begin(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = leads()
    submit("oracle", "gate", key="a")
    choose_tasks = worker._choose_tasks

    def then_discard(*args: Any) -> Any:
        seen = choose_tasks(*args)
        Task.objects.all().discard()
        return seen

    monkeypatch.setattr(worker, "_choose_tasks", then_discard)
    assert turned(worker) == {"a": "discarded"}
    assert not gate.tasks


def test_a_beginning_whose_answer_was_lost_is_looked_for_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = leads()
    submit("oracle", "gate", key="a")
    guarded = worker._guarded

    def twice(send: Any) -> Any:
        guarded(send)  # committed, but the reply is lost
        return guarded(send)

    monkeypatch.setattr(worker, "_guarded", twice)
    assert turned(worker) == {"a": "running"}
    assert [one.attempt for one in worker.in_hand.attempts.values()] == [2]


def test_no_more_tasks_run_at_a_time_than_there_are_lanes(gate: Gate) -> None:
    worker = leads(lanes=2)
    for key in "abc":
        submit("oracle", "gate", key=key, lane=key)
    for _ in range(3):
        assert turned(worker) == {"a": "running", "b": "running", "c": "ready"}


def test_a_stream_that_is_deleted_while_it_is_led_ends_the_term(gate: Gate) -> None:
    worker = leads()
    Stream.objects.all().delete()
    with pytest.raises(LeaseLost, match="deleted"):
        run_once(worker)


def test_what_could_not_be_begun_is_not_begun_by_the_end_of_the_process(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = leads()
    submit("oracle", "gate", key="a")

    def away(send: Any) -> Any:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(worker, "_guarded", away)
        with pytest.raises(DatabaseUnavailable):
            run_once(worker)
    with pytest.raises(ProcessMustExit):
        loop(worker).cut_off("it is to end")
    assert states() == {"a": "ready"}


def test_a_task_that_its_handler_gives_back_for_later_waits_with_its_lane_and_has_not_failed(
    gate: Gate,
) -> None:
    worker = leads(lanes=2, max_crashes=5)

    @handler("away")
    def give_back(_: object) -> None:
        raise GivenBack("no\nbroker", after=3_600)

    for key, kind, lane in (("a1", "away", "a"), ("a2", "gate", "a"), ("b1", "gate", "b")):
        submit("oracle", kind, key=key, lane=lane)
    Task.objects.filter(key="a1").update(crashes=1)
    turned(worker)
    eventually(lambda: not worker.in_hand._ended.empty(), WITHIN)
    for _ in range(3):
        assert turned(worker) == {"a1": "ready", "a2": "ready", "b1": "running"}
    given = task("a1")
    assert (given.attempts, given.failures, given.crashes, given.outcome) == (1, 0, 0, "no broker")
