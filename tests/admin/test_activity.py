"""The activity of elections, streams, tasks and timers in the admin, and its permissions."""

import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from resourcepool.elections.models import Election as ElectionRow
from resourcepool.models import Dispenser, DispenserTask, Event, Stream, Task, Timer, Topic
from resourcepool.signals import EventKind
from resourcepool.taskqueue import submit
from tests.admin.conftest import event, may_only, text

EVENTS = "/admin/resourcepool/event/"
ADMIN = "/admin/resourcepool/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def task() -> Task:
    Stream.objects.create(name="oracle")
    submit("oracle", "note", key="req-42")
    found: Task = Task.objects.get()
    event(found, EventKind.BLOCKED, reason="oracle/req-42: disk full", fence=3)
    event(Stream.objects.get(), EventKind.ACQUIRED, reason="", holder="web-1", fence=7)
    event(Stream.objects.get(), EventKind.PAUSED, reason="", actor="alice", fence=7)
    return found


def kinds(client: Client, query: str) -> set[str]:
    answer = client.get(EVENTS + query)
    assert answer.status_code == 200
    return {one.what for one in answer.context["cl"].result_list}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"blocked", "acquired", "paused"}),
        ("?pool=resourcepool.task", {"blocked"}),
        ("?pool=resourcepool.stream", {"acquired", "paused"}),
        ("?pool=resourcepool.election", set()),
        ("?what=paused", {"paused"}),
        ("?what=blocked", {"blocked"}),
        ("?what=acquired", {"acquired"}),
        ("?who=alice", {"paused"}),
        ("?who=web", {"acquired"}),
        ("?q=alice", {"paused"}),
        ("?q=web-1", {"acquired"}),
        ("?q=oracle", {"acquired", "paused"}),
        ("?q=oracle/req-42", {"blocked"}),
        ("?q=oracle/none", set()),
        ("?q=oracle/%00", set()),
    ],
)
def test_events_are_found_by_kind_holder_and_operator(
    admin_client: Client, task: Task, query: str, expected: set[str]
) -> None:
    assert kinds(admin_client, query) == expected


def test_the_list_says_elected_and_resigned_and_links_the_pages(admin_client: Client, task: Task) -> None:
    event(ElectionRow.objects.create(name="reports"), EventKind.RELEASED, is_whole=True)
    shown = text(admin_client.get(EVENTS))
    assert "was elected leader of stream oracle" in shown
    assert "acquired, elected" in shown
    page = admin_client.get(EVENTS).content.decode()
    for address in (f"task/{task.pk}/", "stream/oracle/", "election/reports/"):
        assert f"{ADMIN}{address}change/" in page


def test_each_page_shows_the_activity_of_its_row(admin_client: Client, task: Task) -> None:
    assert "oracle/req-42: disk full" in text(admin_client.get(f"{ADMIN}task/{task.pk}/change/"))
    shown = text(admin_client.get(f"{ADMIN}stream/oracle/change/"))
    assert "elected" in shown
    assert "alice" in shown
    assert "disk full" not in shown
    ElectionRow.objects.create(name="reports")
    assert "Activity" in text(admin_client.get(f"{ADMIN}election/reports/change/"))
    assert "Activity" not in text(admin_client.get(f"{ADMIN}stream/add/"))


@pytest.mark.parametrize("page", [EVENTS, f"{ADMIN}stream/oracle/activity/"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?around={day_ago}", {"paused"}),
        ("?from={day_ago}", {"paused", "acquired"}),
        ("?to={day_ago_and_more}", {"paused"}),
        ("?from={week_ago}&to={day_ago}", {"paused"}),
        ("?past=hour", {"acquired"}),
        ("?past=week&who=alice", {"paused"}),
        ("?around=nonsense", set()),
        ("?from=0000-00-00", set()),
        ("?past=nonsense", {"paused", "acquired"}),
    ],
)
def test_events_of_a_period(admin_client: Client, page: str, query: str, expected: set[str]) -> None:
    stream = Stream.objects.create(name="oracle")
    event(stream, EventKind.PAUSED, ago=86_400, actor="alice")
    event(stream, EventKind.ACQUIRED, holder="web-1")

    def ago(seconds: float) -> str:
        return (timezone.localtime() - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")

    moments = {"day_ago": ago(86_430), "day_ago_and_more": ago(86_000), "week_ago": ago(7 * 86_400)}
    if query.endswith("&to={day_ago}"):
        moments["day_ago"] = ago(86_000)
    answer = admin_client.get(page + query.format(**moments))
    assert answer.status_code == 200
    assert {one.what for one in answer.context["cl"].result_list} == expected


def test_the_events_that_are_shown_can_be_downloaded(admin_client: Client, task: Task) -> None:
    answer = admin_client.get(f"{EVENTS}?who=alice&export=csv")
    header, row = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert header.startswith("at,sentence,what,pool,row")
    assert ",alice paused stream oracle,paused,resourcepool.stream,oracle," in row
    client = Client()
    may_only(client, "view_stream")
    assert client.get(f"{EVENTS}?export=csv").status_code == 403
    of_row: Any = client.get(f"{ADMIN}stream/oracle/activity/?export=csv")
    assert len(b"".join(of_row.streaming_content).splitlines()) == 3


def test_viewing_the_activity_of_a_stream_needs_permission_to_view_it(client: Client, task: Task) -> None:
    may_only(client, "view_stream")
    assert client.get(f"{ADMIN}stream/oracle/activity/").status_code == 200
    assert client.get(f"{ADMIN}task/{task.pk}/activity/").status_code == 403
    assert client.get(EVENTS).status_code == 403


def test_errors_of_tasks_are_hidden_from_viewers_of_events_alone(client: Client, task: Task) -> None:
    may_only(client, "view_event")
    assert kinds(client, "") == {"acquired", "paused"}
    assert kinds(client, "?q=oracle/req-42") == kinds(client, "?what=blocked") == set()
    hidden = Event.objects.get(what=EventKind.BLOCKED)
    assert "disk full" not in client.get(f"{EVENTS}{hidden.pk}/change/", follow=True).content.decode()


@pytest.fixture
def others() -> list[Any]:
    dispenser = Dispenser.objects.create(name="reviews")
    handed = DispenserTask.objects.create(dispenser=dispenser, key="a", score=1.0)
    topic = Topic.objects.create(name="order.timeout")
    timer = Timer.objects.create(topic=topic, name="order-42", due_at=timezone.now())
    event(dispenser, EventKind.REVOKED, holder="alice")
    event(handed, EventKind.FAILED, reason="reviews/a: expired")
    event(topic, EventKind.PAUSED, actor="ann")
    event(timer, EventKind.DEAD, reason="order.timeout/order-42: disk full")
    return [dispenser, handed, topic, timer]


def test_pages_of_dispensers_topics_tasks_and_timers_show_their_activity(
    admin_client: Client, others: list[Any]
) -> None:
    for row, said in zip(others, ("revoked", "expired", "paused", "disk full"), strict=True):
        page = f"{ADMIN}{row._meta.model_name}/{row.pk}/"
        assert said in text(admin_client.get(f"{page}change/"))
        assert said in text(admin_client.get(f"{page}activity/"))
    assert kinds(admin_client, "?q=reviews/a") == {"failed"}
    assert kinds(admin_client, "?q=order.timeout/order-42") == {"dead"}
    assert kinds(admin_client, "?q=reviews") == {"revoked"}
    assert kinds(admin_client, "?pool=resourcepool.timer") == {"dead"}


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ((), {"revoked", "paused"}),
        (("view_dispensertask",), {"revoked", "paused", "failed"}),
        (("view_timer",), {"revoked", "paused", "dead"}),
        (("view_task",), {"revoked", "paused"}),
    ],
)
def test_errors_of_tasks_and_timers_need_permission_to_view_them(
    client: Client, others: list[Any], permissions: tuple[str, ...], expected: set[str]
) -> None:
    may_only(client, "view_event", *permissions)
    assert kinds(client, "") == expected
    assert kinds(client, "?q=reviews/a") == expected & {"failed"}
    assert kinds(client, "?q=order.timeout/order-42") == expected & {"dead"}


@pytest.mark.parametrize("page", [EVENTS, f"{ADMIN}stream/oracle/activity/"])
def test_a_moment_that_is_no_date_is_named_with_what_is_allowed(admin_client: Client, page: str) -> None:
    Stream.objects.create(name="oracle")
    assert "“nonsense” is not a date and time; write it like 2026-11-27T03:00" in text(
        admin_client.get(f"{page}?around=nonsense")
    )
    assert "is not a date" not in text(admin_client.get(f"{page}?around=2026-11-27T03:00"))
