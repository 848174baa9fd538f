"""The status of a stream, and why nothing runs."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.elections.models import selector
from resourcepool.exceptions import BadOption
from resourcepool.models import Stream, Task, Ticket
from resourcepool.status.alarm import AlarmKind
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.work.streams import MAX_COUNTED, STREAMS, stream_alarms, streams
from resourcepool.taskqueue import NewTask, submit, submit_many
from resourcepool.waiting.models import pool_name
from tests.app.rows import change, granted

pytestmark = pytest.mark.django_db


def made(**options: object) -> Stream:
    row: Stream = Stream.objects.create(name="oracle", **options)
    return row


def test_an_idle_stream_has_nothing_to_explain() -> None:
    made()
    (one,) = streams()
    assert (one.name, one.leader, one.depth, one.first, one.explanation) == ("oracle", "", 0, None, "")


def test_tasks_that_nobody_runs_are_explained_by_the_missing_consumer() -> None:
    made()
    submit("oracle", "note", key="a")
    (one,) = streams("oracle")
    assert one.depth == 1
    assert one.first is not None
    assert (one.first.key, one.first.state, one.first.runs) == ("a", "ready", None)
    assert one.explanation == "no consumer is leading; start one: `manage.py resourcepool_consume oracle`"


def test_a_blocked_stream_names_the_task_and_its_error() -> None:
    granted(made(), "web-1")
    submit_many("oracle", [NewTask("note", key="a"), NewTask("note", key="b")])
    Task.objects.filter(key="a").update(state="blocked", outcome="disk full")
    (one,) = streams()
    assert (one.leader, one.blocked, one.depth) == ("web-1", 1, 2)
    assert one.explanation == "blocked by task a: disk full. Retry or discard the task"


def test_a_blocked_stream_that_nobody_leads_says_both() -> None:
    made(is_paused=True)
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked", outcome="disk full")
    assert streams()[0].explanation == (
        "no consumer is leading; start one: `manage.py resourcepool_consume oracle`; it is paused;"
        " blocked by task a: disk full. Retry or discard the task"
    )


def test_a_paused_stream_says_so() -> None:
    granted(made(is_paused=True), "web-1")
    submit("oracle", "note")
    assert streams()[0].explanation == "it is paused"


def test_a_task_that_waits_for_its_next_try_says_when() -> None:
    granted(made(), "web-1")
    submit("oracle", "note", key="a")
    change(Task.objects.get(), outcome="no answer", busy_before=timezone.now() + datetime.timedelta(hours=2))
    assert streams()[0].explanation.startswith("task a will be retried in ")


def test_what_has_finished_is_counted_by_its_outcome() -> None:
    made()
    submit_many("oracle", [NewTask("note", key=str(number)) for number in range(4)])
    now = timezone.now()
    for key, state, at in (
        ("0", "done", now),
        ("1", "dead", now),
        ("2", "skipped", now),
        ("3", "dead", now - datetime.timedelta(days=1)),
    ):
        Task.objects.filter(key=key).update(state=state, finished_at=at)
    (one,) = streams()
    assert (one.depth, one.done, one.failed, one.dead) == (0, 1, 2, 2)
    assert MAX_COUNTED > 4


def test_many_streams_are_read_with_as_many_statements_as_one(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert streams() == []
    for number in range(MAX_ROWS):
        Stream.objects.create(name=f"{number:03d}")
    submit("007", "note", key="a")
    granted(Stream.objects.get(name="007"), "web-1")
    with django_assert_num_queries(5):
        found = streams()
    assert len(found) == MAX_ROWS
    assert [(one.name, one.leader, one.first and one.first.key) for one in found if one.depth] == [
        ("007", "web-1", "a")
    ]


def test_every_stream_is_on_a_page_each_with_as_many_statements(django_assert_num_queries: Any) -> None:
    names = [f"{number:03d}" for number in range(7)]
    Stream.objects.bulk_create([Stream(name=name) for name in names])
    seen, after, pages = list[str](), "", 0
    while pages == 0 or after:
        with django_assert_num_queries(4):  # none has a task: no query for the first ones
            found, after = STREAMS.page(after=after, limit=3)
        seen, pages = seen + [one.name for one in found], pages + 1
    assert (seen, pages) == (names, 3)
    assert STREAMS.page(limit=7).after == ""


def test_streams_are_found_by_how_they_stand_and_by_a_part_of_their_name() -> None:
    for name in ("idle", "led", "lost", "stuck", "rested"):
        Stream.objects.create(name=name, is_paused=name == "rested")
        if name != "idle":
            submit(name, "note", key=name)
    granted(Stream.objects.get(name="led"), "web-1")
    granted(Stream.objects.get(name="stuck"), "web-1")
    Task.objects.filter(key="stuck").update(state="blocked")
    expected = {
        "no-consumer": ["lost", "rested"],
        "blocked": ["stuck"],
        "paused": ["rested"],
        "busy": ["led", "lost", "rested", "stuck"],
        "": ["idle", "led", "lost", "rested", "stuck"],
    }
    found = {which: [one.name for one in STREAMS.page(status=which)[0]] for which in expected}
    assert found == expected
    assert [one.name for one in STREAMS.page(containing="st", status="busy")[0]] == [
        "lost",
        "rested",
        "stuck",
    ]


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 201}, {"status": "x"}, {"after": "\0"}, {"containing": "\n"}]
)
def test_a_page_of_nonsense_is_refused_in_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=next(iter(wrong))):
        STREAMS.page(**wrong)


def test_each_stream_has_what_is_its_own_and_only_those_that_are_named_are_read() -> None:
    for name in ("a", "b", "c"):
        Stream.objects.create(name=name)
        submit_many(
            name, [NewTask("note", key=f"{name}{number}") for number in range(ord(name) - ord("a") + 1)]
        )
    Task.objects.filter(key="c2").update(state="done", finished_at=timezone.now())
    ticket = Ticket.objects.create(pool=pool_name(Stream), selector=selector("b"), asked_at=timezone.now())
    granted(ticket, "web-2")
    b, c = streams("c", "b")
    assert (b.name, b.depth, b.done, b.standbys, b.first and b.first.key) == ("b", 2, 0, 1, "b0")
    assert (c.name, c.depth, c.done, c.standbys, c.first and c.first.key) == ("c", 2, 1, 0, "c0")


def test_no_more_are_counted_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.status.work.streams.MAX_COUNTED", 2)
    made()
    submit_many("oracle", [NewTask("note", key=str(number)) for number in range(6)])
    Task.objects.filter(key__lt="3").update(state="done", finished_at=timezone.now())
    (one,) = streams()
    assert (one.depth, one.done) == (2, 2)


def test_tasks_without_a_consumer_are_an_alarm_that_says_what_to_start() -> None:
    made()
    assert list(stream_alarms(streams(), 600)) == []
    submit("oracle", "note", key="a")
    (alarm,) = stream_alarms(streams(), 600)
    assert (alarm.kind, alarm.is_severe) == (AlarmKind.NO_CONSUMER, True)
    assert str(alarm) == (
        "stream: oracle: no consumer is leading; start one: `manage.py resourcepool_consume oracle`."
    )


def test_a_task_that_blocks_its_stream_is_an_alarm_and_a_pause_is_none() -> None:
    granted(made(), "web-1")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked", outcome="disk full")
    (alarm,) = stream_alarms(streams(), 600)
    assert (alarm.kind, alarm.text) == (
        AlarmKind.BLOCKED,
        "blocked by task a: disk full. Retry or discard the task.",
    )
    Stream.objects.update(is_paused=True)
    assert list(stream_alarms(streams(), 600)) == []


def test_an_old_first_task_is_an_alarm() -> None:
    granted(made(), "web-1")
    submit("oracle", "note", key="a")
    assert list(stream_alarms(streams(), 600)) == []
    Task.objects.update(submitted_at=timezone.now() - datetime.timedelta(hours=1))
    (alarm,) = stream_alarms(streams(), 600)
    assert alarm.kind is AlarmKind.LATE_TASKS
    assert alarm.text == "the first task, a, is 60 min old; unfinished: 1."


def test_tasks_that_failed_for_good_are_an_alarm_also_while_nothing_else_is_left() -> None:
    made(is_paused=True)
    submit_many("oracle", [NewTask("note", key=key) for key in "ab"])
    Task.objects.update(state="dead", finished_at=timezone.now())
    (alarm,) = stream_alarms(streams(), 600)
    assert (alarm.kind, alarm.is_severe, alarm.pool) == (AlarmKind.DEAD_TASKS, False, "stream: oracle")
    assert alarm.text == "failed for good, waiting for an operator: 2. Retry or discard them."


def test_a_task_that_blocks_one_of_several_lanes_is_an_alarm() -> None:
    granted(made(lanes=2), "web-1")
    submit_many("oracle", [NewTask("note", key=key, lane=key) for key in "ab"])
    Task.objects.filter(key="b").update(state="blocked")
    (alarm,) = stream_alarms(streams(), 600)
    assert (alarm.kind, alarm.text) == (
        AlarmKind.BLOCKED,
        "tasks that block their lanes: 1; retry or discard them.",
    )
