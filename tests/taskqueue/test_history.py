"""The events of streams, their leaders and their tasks in the history."""

from threading import current_thread
from typing import Any

import pytest
from django.db import transaction

from resourcepool.clock import monotonic
from resourcepool.db.threads import Wakeup
from resourcepool.elections import Election
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Stream, Task
from resourcepool.signals import EventKind
from resourcepool.sweeps.sweep import sweep
from resourcepool.taskqueue import Consumer, NewTask, handler, submit, submit_many
from resourcepool.taskqueue.consumer import StreamWorker
from resourcepool.taskqueue.worker_loop import WorkerLoop
from tests.app.rows import expire
from tests.committed import Statement
from tests.eventually import InBackground, eventually
from tests.history.fixtures import events, history  # noqa: F401 (a fixture)
from tests.history.recorded import told
from tests.taskqueue.consumers import WITHIN, Gate, consuming, exit_process, states, stream, task


def test_who_led_a_stream_and_that_it_resigned_is_told() -> None:
    row = stream()
    with consuming() as consumer:
        eventually(lambda: consumer.term, WITHIN)
        assert consumer.term is not None
        holder = consumer.term.holder
    assert told(row)[-1] == "released"
    assert set(Event.objects.of(row).values_list("holder", flat=True)) == {holder}


def test_who_was_elected_in_an_election_is_told_and_how_each_term_ended() -> None:
    Election("reports").campaign().resign()
    row = ElectionRow.objects.get()
    assert told(row) == ["released"]
    assert Event.objects.of(row).get().is_whole
    term = Election("reports").campaign()
    following = InBackground(lambda: Election("reports").campaign(timeout=WITHIN))
    waiting = eventually(lambda: Election("reports").standbys())
    term.resign(to=waiting[0])
    second = following.result()
    expire(row)
    third = Election("reports").campaign()
    with pytest.raises(Exception, match="is lost"):
        second.renew()
    third.resign()
    assert "handed_over" in told(row)
    assert Event.objects.get(what=EventKind.HANDED_OVER).reason == f"to {waiting[0]}"
    assert Event.objects.get(what=EventKind.LOST).fence == second.fence


def test_a_leader_that_died_is_told_by_the_sweep_whether_another_one_took_over_or_not() -> None:
    Election("a").campaign()
    Election("b").campaign()
    recorder.flush()
    for row in ElectionRow.objects.all():
        expire(row)
    third = Election("b").campaign()
    recorder.flush()
    assert "1 lease expired, 1 of these since acquired by another holder" in (sweep() or "")
    assert [told(row)[-1] for row in ElectionRow.objects.order_by("name")] == ["expired", "expired"]
    third.resign()


def test_a_leader_that_resigned_in_favour_of_a_waiter_has_not_expired() -> None:
    first = Election("reports").campaign()
    following = InBackground(lambda: Election("reports").campaign(timeout=WITHIN))
    eventually(lambda: Election("reports").standbys())
    recorder.flush()  # so that the term has an event of its beginning
    first.resign()
    second = following.result()
    recorder.flush()
    sweep()
    assert "expired" not in told(ElectionRow.objects.get())
    second.resign()


def divides(_: Any) -> float:
    return 1 / 0


@pytest.mark.parametrize(
    ("policy", "what", "run", "why"),
    [
        ("block", "blocked", divides, "ZeroDivisionError: division by zero"),
        ("skip", "skipped", lambda _: False, "the handler returned False"),
        ("dead-letter", "dead", divides, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_task_that_is_given_up_is_told_with_its_error_but_not_its_retries(
    policy: str, what: str, run: Any, why: str
) -> None:
    stream(on_failure=policy, retries=2, retry_delay=0)
    handler("note")(run)
    submit("oracle", "note", key="a")
    with consuming():
        eventually(lambda: states()["a"] == what, WITHIN, states)
    assert events(Task) == [(what, "", f"oracle/a: {why}")]
    assert told(task("a")) == [what]


def test_a_task_that_kept_killing_its_process_is_told() -> None:
    stream(max_crashes=2)
    submit("oracle", "note", key="a")
    Task.objects.update(crashes=2)
    with consuming():
        eventually(lambda: states()["a"] == "blocked", WITHIN, states)
    why = "oracle/a: its process crashed or froze while running it (crashes: 2)"
    assert [event[2] for event in events(Task)] == [why]


def test_what_ran_too_long_is_written_down_before_its_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.history.recorder.EVERY", 600)
    stream()
    gate, seen = Gate(), []

    def ended(why: str) -> Any:
        seen.extend(Event.objects.filter(pool="resourcepool.task").values_list("what", flat=True))
        gate.may_end.set()
        exit_process(why)

    handler("slow", max_runtime=0.1)(gate)
    submit("oracle", "slow", key="a")
    running = InBackground(Consumer("oracle", exit_process=ended).run)
    with pytest.raises(Exception, match="max_runtime"):
        running.result(WITHIN)
    assert seen == ["blocked"]
    recorder.flush()


@pytest.mark.only("mysql", "postgresql")
def test_only_what_was_changed_is_told_when_somebody_was_faster() -> None:
    stream()
    submit_many("oracle", [NewTask("note", key=key) for key in "abc"])
    Task.objects.update(state="blocked")
    with transaction.atomic():
        Task.objects.filter(key="b").update(state="done")
        retrying = InBackground(lambda: Task.objects.all().retry("alice"))
    assert (retrying.result(), states()) == (2, {"a": "ready", "b": "done", "c": "ready"})
    assert [event[2] for event in events(Task)] == ["oracle/a", "oracle/c"]


def test_a_task_that_ran_well_is_told_of_nowhere_and_costs_no_statement_nor_does_an_idle_consumer(
    settings: Any, statements: list[Statement]
) -> None:
    handler("note")(lambda _: None)
    sent = []
    for name, is_told in (("untold", False), ("told", True)):
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": is_told}
        stream(name)
        with Election(name, Stream).campaign() as term:
            recorder.flush()
            wakeup = Wakeup()
            worker = StreamWorker(name, term, wakeup)
            leading = WorkerLoop(name, worker, wakeup)
            leading.run_once(may_begin=True)
            submit(name, "note")
            statements.clear()
            leading.run_once(may_begin=True)
            wakeup.sleep_until(monotonic() + WITHIN)
            leading.run_once(may_begin=True)
            leading.run_once(may_begin=True)
            sent.append(
                [one.sql.replace(name, "it") for one in statements if one.thread == current_thread().name]
            )
            assert states(name).popitem()[1] == "done"
            worker.in_hand.close()
    assert sent[0] == sent[1]
    assert events(Task) == []


def test_a_stream_may_keep_no_history(settings: Any) -> None:
    pools = {"resourcepool.Stream": {"history": False}, "resourcepool.Task": {"history": False}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "POOLS": pools}
    stream()
    handler("fail")(lambda _: False)
    submit("oracle", "fail", key="a")
    with consuming():
        eventually(lambda: states()["a"] == "blocked", WITHIN, states)
    Stream.objects.all().pause("alice")
    Task.objects.all().discard("alice", "typo")
    assert events(Stream) == events(Task) == []
