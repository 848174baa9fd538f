"""The status of a stream, as it is read."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import selector
from resourcepool.exceptions import BadOption
from resourcepool.models import Stream, Task, Ticket
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.work.streams import MAX_COUNTED, STREAMS, streams
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


def test_leader_and_first_task_are_read() -> None:
    granted(made(is_paused=True, lanes=2), "web-1")
    submit_many("oracle", [NewTask("note", key="a"), NewTask("note", key="b")])
    Task.objects.filter(key="a").update(state="blocked", outcome="disk full", submitted_at=DbLater(-3_600))
    (one,) = streams("oracle")
    assert (one.leader, one.blocked, one.depth, one.is_paused, one.lanes) == ("web-1", 1, 2, True, 2)
    assert one.first is not None
    assert (one.first.key, one.first.state, one.first.outcome, one.first.waits) == (
        "a",
        "blocked",
        "disk full",
        0,
    )
    assert 3_600 <= one.first.age < 4_000
    change(Task.objects.get(key="a"), state="ready", busy_before=DbLater(7_200))
    first = streams()[0].first
    assert first is not None
    assert (7_000 < first.waits <= 7_201, first.runs) == (True, None)
    change(Task.objects.get(key="a"), state="running", started_at=DbLater(-60))
    first = streams()[0].first
    assert first is not None
    assert (first.waits, 60 <= (first.runs or 0) < 400) == (0, True)


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
