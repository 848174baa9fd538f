"""Systems with named rows in the admin, and the lists of what belongs to them: tasks, timers, buckets, messages .."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from django.utils.text import capfirst

from resourcepool.db.dialect import DbLater
from resourcepool.elections.election import selector
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import (
    Bucket,
    Dispenser,
    DispenserTask,
    Queue,
    QueueGroup,
    Server,
    Stream,
    Subscription,
    Task,
    Ticket,
    Timer,
    TimerNode,
    Topic,
)
from resourcepool.signals import EventKind
from resourcepool.status.registry import named_systems
from resourcepool.status.system import SEPARATOR, figure_text
from resourcepool.status.work.pages import recurrence
from resourcepool.waiting.models import pool_name
from tests.admin.conftest import form_at, may_only, text
from tests.app.rows import change, expire, granted
from tests.operations.scene import channels, queues, work

pytestmark = pytest.mark.django_db
NAMED = named_systems()


def url(model: str, view: str, *args: Any) -> str:
    return reverse(f"admin:resourcepool_{model}_{view}", args=args)


def page(client: Client, model: str, view: str, *args: Any, **query: str) -> str:
    return text(client.get(url(model, view, *args), query))


@pytest.fixture(autouse=True)
def _scene() -> None:
    """See there; and an election, a live node, a late timer, and errors with markup."""
    work()
    channels()
    granted(ElectionRow.objects.create(name="reports"), "web-1 <b>")
    granted(
        TimerNode.objects.create(name="web-1 <b>", topics=["orders"], labels={"zone": "eu"}, version="2.10")
    )
    for model in (Task, DispenserTask, Timer):
        model.objects.filter(pk=702).update(outcome="disk <full>")
    late = timezone.now() - timezone.timedelta(seconds=600)
    Timer.objects.create(
        pk=705, topic_id="orders", name="late", due_at=late, busy_before=late, payload='{"n": 1}'
    )


@pytest.mark.parametrize("name", NAMED)
def test_the_list_and_the_page_show_the_status_and_every_figure(admin_client: Client, name: str) -> None:
    system = NAMED[name]
    model = system.reader.model._meta.model_name
    listed = admin_client.get(url(model, "changelist"))
    rows = list(listed.context["cl"].result_list)
    opened = [admin_client.get(url(model, "change", row.pk)) for row in rows]
    for row, answer in (*((row, listed) for row in rows), *((one.context["original"], one) for one in opened)):
        shown = text(answer)
        assert f"{row.status.badge.html}" in shown
        for heading, figure in system.figures_of_pages[2:]:
            assert str(capfirst(heading)) in shown
            first, *others = escape(figure_text(figure, row.status)).split(SEPARATOR)
            assert f"{first}</a>" in shown if figure.rows else first in shown
            assert all(other in shown for other in others)
    assert "<b>" not in text(listed)


def test_a_status_is_explained_with_the_command_that_helps(admin_client: Client) -> None:
    TimerNode.objects.all().delete()
    said = "no live node handles it; start one: <code>manage.py resourcepool_timers</code>"
    assert said in page(admin_client, "topic", "changelist")
    assert "indexer: 1 (" in page(admin_client, "channel", "changelist")  # who is furthest behind


FOUND = [
    ("task", {"stream": "orders"}, {703, 702, 701}),
    ("task", {"stream": "other"}, set()),
    ("task", {"status": "unfinished"}, {701}),
    ("task", {"status": "dead"}, {702}),
    ("task", {"q": "bad"}, {702}),
    ("dispensertask", {"dispenser": "orders", "state": "failed"}, {702}),
    ("dispensertask", {"dispenser": "other"}, set()),
    ("dispensertask", {"q": "new"}, {701}),
    ("dispensertask", {"bucket": "alice"}, {704}),
    ("dispensertask", {"bucket": "carol"}, set()),
    ("timer", {"topic": "other"}, set()),
    ("timer", {"topic": "orders"}, {701, 702, 703, 705}),
    ("timer", {"status": "unfinished"}, {701, 705}),
    ("timer", {"status": "due"}, {705}),
    ("timer", {"status": "late"}, {705}),
    ("timer", {"status": "dead"}, {702}),
    ("timer", {"status": "handed"}, set()),
    ("timer", {"q": "late"}, {705}),
    ("timer", {"q": "lat"}, set()),
    ("bucket", {"dispenser": "orders", "q": "alice"}, {711}),
    ("bucket", {"dispenser": "idle"}, set()),
    ("bucket", {"status": "live"}, {711}),
    ("bucket", {"status": "expired"}, set()),
    ("subscription", {"channel": "config"}, {801, 802}),
    ("subscription", {"status": "unread"}, {801}),
    ("stream", {"status": "no-consumer"}, {"orders"}),
    ("stream", {"status": "blocked"}, set()),
    ("stream", {"status": "busy"}, {"orders"}),
    ("stream", {"status": "paused"}, {"idle"}),
    ("stream", {"status": "x"}, {"idle", "orders"}),
]


@pytest.mark.parametrize(("model", "query", "expected"), FOUND)
def test_what_filters_and_search_find(
    admin_client: Client, model: str, query: dict[str, str], expected: set[Any]
) -> None:
    rows = admin_client.get(url(model, "changelist"), query).context["cl"].result_list
    assert {row.pk for row in rows} == expected


def test_messages_are_found_by_their_channel(admin_client: Client) -> None:
    MessageRow.objects.update(payload='{"a": "<b>"}')
    assert "2 messages" in page(admin_client, "message", "changelist", channel="config")
    assert "0 messages" in page(admin_client, "message", "changelist", channel="other")
    assert "&lt;b&gt;" in page(admin_client, "message", "change", MessageRow.objects.first().pk)


def test_of_one_container_those_that_run_next_are_listed_in_that_order(admin_client: Client) -> None:
    for number, key in enumerate("ab"):
        Task.objects.create(pk=720 + number, stream_id="orders", key=key, type="note", state="blocked")
    moment = timezone.now() + timezone.timedelta(seconds=60)
    Timer.objects.create(pk=706, topic_id="orders", name="b", due_at=moment, busy_before=moment)
    for model, query, pks in (
        ("task", {"stream": "orders", "status": "unfinished"}, [701, 720, 721]),
        ("task", {"stream": "orders", "status": "blocked"}, [720, 721]),
        ("task", {"stream": "orders"}, [721, 720, 703, 702, 701]),
        ("task", {"status": "unfinished"}, [721, 720, 701]),
        ("timer", {"topic": "orders", "status": "unfinished"}, [705, 706, 701]),
    ):
        rows = admin_client.get(url(model, "changelist"), query).context["cl"].result_list
        assert [row.pk for row in rows] == pks, query


@pytest.mark.parametrize("model", ["task", "dispensertask", "timer"])
def test_the_error_of_failed_work_is_shown_with_what_can_be_done_about_it(
    admin_client: Client, model: str
) -> None:
    for shown in (page(admin_client, model, "changelist", q="bad"), page(admin_client, model, "change", 702)):
        assert "disk &lt;full&gt;" in shown
        assert '<span class="resourcepool-state bad">' in shown
    offered = page(admin_client, model, "change", 702)
    assert ("/operate/retry/" in offered, "/operate/fire/" in offered) == (True, False)
    assert "/operate/retry/" not in page(admin_client, model, "change", 701)


def test_a_timer_says_when_it_fires(admin_client: Client) -> None:
    shown = page(admin_client, "timer", "changelist")
    assert "due for 10 min" in shown
    assert "in 60 min" in shown or "in 59 min" in shown
    assert "{&quot;n&quot;: 1}" not in shown
    assert "{&quot;n&quot;: 1}" in page(admin_client, "timer", "change", 705)
    assert '<span class="resourcepool-state bad">' in page(admin_client, "timer", "changelist", q="late")
    change(Timer.objects.get(pk=701), holder="web-1")
    for shown in (page(admin_client, "timer", "changelist"), page(admin_client, "timer", "change", 701)):
        assert "handed over, not yet claimed" in shown


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ('{"every": 300.0}', "every 5 min"),
        ('{"every": 1234567.5}', "every 1,234,567.5 s"),
        ('{"cron": "30 7 * * 1-5", "tz": "Europe/Berlin"}', "30 7 * * 1-5 (Europe/Berlin)"),
        ('{"never": 1}', '{"never": 1}'),  # written past validation
        ("17", "17"),
    ],
)
def test_a_schedule_is_spelled_for_people(admin_client: Client, kept: str, shown: str) -> None:
    assert recurrence(kept) == shown
    Timer.objects.filter(pk=701).update(schedule=kept)
    assert f">{escape(shown)}</div>" in page(admin_client, "timer", "change", 701)


def test_a_bucket_has_its_tasks_and_a_score_is_a_number_and_no_duration(admin_client: Client) -> None:
    assert "?dispenser=orders&amp;bucket=alice" in (shown := page(admin_client, "bucket", "changelist"))
    assert ">1</a>" in shown
    DispenserTask.objects.filter(pk=704).update(score=90)
    shown = page(admin_client, "dispensertask", "change", 704)
    assert "90.0<" in shown.partition("field-score")[2].partition("field-status_badge")[0]


def test_a_subscription_without_a_name_is_called_so_and_one_without_a_reader_is_marked(
    admin_client: Client,
) -> None:
    Subscription.objects.create(channel_id="config", name="00c0ffee", is_durable=False)
    shown = page(admin_client, "subscription", "changelist")
    assert (">unnamed</a>" in shown, ">indexer</a>" in shown) == (True, True)
    said = '<span class="resourcepool-state {}">no reader</span>'
    assert said.format("bad") in shown
    Subscription.objects.update(cursor=3)
    assert said.format("bad") not in page(admin_client, "subscription", "changelist")


def test_a_node_is_shown_with_what_it_is_and_whether_it_lives(admin_client: Client) -> None:
    shown = page(admin_client, "timernode", "changelist")
    for part in ("web-1 &lt;b&gt;", "zone=eu", "2.10", "orders", "alive"):
        assert part in shown
    expire(node := TimerNode.objects.get())
    assert "lost contact" in page(admin_client, "timernode", "change", node.pk)


EDITED: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (Stream, {"retries": 5}, {"elected_term": 7, "resigned_term": 6, "address": 9, "done_kept": 1.0}),
    (Dispenser, {"most_expirations": 3}, {"is_paused": True}),
    (Topic, {"least_version": "2.10", "requires": {}}, {"is_paused": True}),
    (ChannelRow, {"kept": 60.0, "kept_count": 5}, {"last": 4}),
    (QueueGroup, {"heartbeat_every": 2.0}, {"generation": 7, "is_assignment_due": True, "reload_every": 0.1}),
]


@pytest.mark.parametrize(
    ("model", "entered", "meanwhile"), EDITED, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_form_writes_what_was_edited_and_not_what_programs_wrote_meanwhile(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, model: Any, entered: Any, meanwhile: dict[str, Any]
) -> None:
    row = model.objects.filter(name="orders").first() or model.objects.create(name="orders")
    if model is Topic:
        change(row, requires={"zone": "eu"})
    address, save = url(model._meta.model_name, "change", row.pk), model.save

    def save_late(self: Any, *args: Any, **more: Any) -> None:
        change(row, **meanwhile)
        save(self, *args, **more)

    sent = form_at(admin_client, address) | {name: value or "" for name, value in entered.items()}
    monkeypatch.setattr(model, "save", save_late)
    answer = admin_client.post(address, {**sent, "initial-requires": '{"zone": "eu"}'})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    wanted = {**entered, **meanwhile}
    assert model.objects.filter(pk=row.pk).values(*wanted).get() == wanted


def test_a_wrong_setting_is_refused_at_its_field(admin_client: Client) -> None:
    answer = admin_client.post(url("topic", "change", "orders"), {"ttl": "60", "requires": '{"zone": 1}'})
    assert "Each label and its value must" in text(answer)


@pytest.mark.parametrize("model", [Stream, Topic])
@pytest.mark.parametrize("is_paused", [True, False])
def test_a_pause_in_a_form_is_an_event_of_the_user(
    admin_client: Client,
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    model: Any,
    is_paused: bool,
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    events: list[Any] = []
    monkeypatch.setattr("resourcepool.signals.recorders", [events.append])
    name = "orders" if is_paused else "idle"
    address = url(model._meta.model_name, "change", name)
    sent = form_at(admin_client, address)
    sent = {**sent, "is_paused": "on"} if is_paused else {k: v for k, v in sent.items() if v is not True}
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):  # the second time it changes nothing
            assert admin_client.post(address, sent).status_code == 302
    kind = EventKind.PAUSED if is_paused else EventKind.RESUMED
    assert [(one.kind, one.model, one.pk, one.actor) for one in events] == [(kind, model, name, "admin")]


def test_programs_add_all_but_streams_and_what_an_operation_removes_has_no_form_for_that(
    admin_client: Client,
) -> None:
    models = (
        "dispenser",
        "dispensertask",
        "bucket",
        "topic",
        "timer",
        "timernode",
        "task",
        "channel",
        "message",
    )
    for model in (*models, "subscription", "election"):
        assert admin_client.get(url(model, "add")).status_code == 403, model
    assert admin_client.get(url("stream", "add")).status_code == 200
    assert admin_client.get(url("channel", "delete", "config")).status_code == 403


PROTECTED = [
    (Stream, Task, "params"),
    (Topic, Timer, "payload"),
    (Dispenser, DispenserTask, "outcome"),
    (Dispenser, Bucket, "outcome"),
    (QueueGroup, Queue, "parameter"),
]


@pytest.mark.parametrize(("model", "others", "column"), PROTECTED)
@pytest.mark.parametrize("how", ["page", "action"])
def test_what_has_work_is_not_deleted_and_its_work_is_not_read_for_that(
    admin_client: Client, model: Any, others: Any, column: str, how: str
) -> None:
    queues()
    row, name = model.objects.get(name="orders"), model._meta.model_name
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    with CaptureQueriesContext(connection) as sent:
        if how == "page":
            shown = page(admin_client, name, "delete", row.pk)
            admin_client.post(url(name, "delete", row.pk), {"post": "yes"})
        else:
            shown = text(admin_client.post(url(name, "changelist"), chosen))
    assert f">orders has {others._meta.verbose_name_plural}</a>" in shown
    assert f"?{'queue_group' if model is QueueGroup else name}=orders" in shown
    assert not [one["sql"] for one in sent if f'"{column}"' in one["sql"].replace("`", '"')]
    assert model.objects.filter(pk=row.pk).exists()
    for each in (others, DispenserTask, Bucket, Server):
        each.objects.all().delete()
    admin_client.post(url(name, "delete", row.pk), {"post": "yes"})
    assert not model.objects.filter(pk=row.pk).exists()


def first_work(shown: str) -> str:
    return shown.partition('id="resourcepool-work"')[2].partition("</section>")[0]


def test_the_page_of_a_stream_shows_the_task_that_blocks_it_and_retries_it_at_once(
    admin_client: Client,
) -> None:
    for key in "ab":
        Task.objects.create(stream_id="orders", key=key, type="note", state="blocked")
    Task.objects.filter(pk=701).update(state="blocked", outcome="disk <full>")
    shown = first_work(page(admin_client, "stream", "change", "orders"))
    assert shown.index("task/701/change/") < shown.index(f"task/{Task.objects.get(key='a').pk}/change/")
    assert "disk &lt;full&gt;" in shown
    address = shown.partition('formaction="')[2].partition('"')[0].replace("&amp;", "&")
    answer = admin_client.post(address, {"confirmed": "yes"}, follow=True)
    assert answer.redirect_chain == [(url("stream", "change", "orders"), 302)]
    assert "Task orders/new is ready again." in text(answer)
    assert Task.objects.get(pk=701).state == "ready"


@pytest.mark.parametrize(
    ("model", "columns", "shown", "not_shown"),
    [
        (Stream, {"lanes": 2}, "b", "new"),  # those that block their lanes before older ones
        (Dispenser, {}, "bad", "new"),  # failed ones before others
        (Topic, {}, "late", "bad"),
    ],
)
def test_the_page_of_a_container_shows_what_an_operator_looks_at_first(
    admin_client: Client, model: Any, columns: dict[str, Any], shown: str, not_shown: str
) -> None:
    Task.objects.create(stream_id="orders", key="b", type="note", state="blocked")
    model.objects.filter(name="orders").update(**columns)
    found = first_work(page(admin_client, model._meta.model_name, "change", "orders"))
    assert (f'/change/">{shown}</a>' in found, f'/change/">{not_shown}</a>' in found) == (True, False)


def test_only_what_would_change_something_is_offered(admin_client: Client) -> None:
    assert "/operate/prune/" in page(admin_client, "channel", "change", "config")
    assert "/operate/prune/" not in page(admin_client, "channel", "change", "empty")
    for pk, is_offered in ((801, True), (802, False)):  # 802 has a reader
        shown = page(admin_client, "subscription", "change", pk)
        assert ("/operate/remove/" in shown, "/operate/move/" in shown) == (is_offered, True)


@pytest.mark.parametrize(("model", "key"), [("subscription", "801"), ("channel", "config")])
def test_what_is_removed_on_its_page_leads_to_the_list(admin_client: Client, model: str, key: str) -> None:
    answer = admin_client.post(url(model, "operate", key, "remove"), {"confirmed": "yes"}, follow=True)
    assert answer.redirect_chain == [(url(model, "changelist"), 302)]


def test_payloads_take_a_permission_of_their_own(client: Client, django_user_model: Any) -> None:
    may_only(client, "view_channel", "view_subscription")
    assert client.get(url("message", "changelist")).status_code == 403
    assert (
        client.post(url("subscription", "operate", 801, "move"), {"confirmed": "yes", "to": "now"}).status_code
        == 403
    )
    assert Subscription.objects.get(pk=801).cursor == 2


def test_every_row_is_on_some_page_of_the_list(admin_client: Client) -> None:
    Stream.objects.bulk_create([Stream(name=f"{number:03d}") for number in range(230)])
    answers = [admin_client.get(url("stream", "changelist"), {"p": number}) for number in range(1, 6)]
    assert len({row.name for answer in answers for row in answer.context["cl"].result_list}) == 232


def test_an_election_shows_its_standbys_in_order(admin_client: Client) -> None:
    waits = {"pool": pool_name(ElectionRow), "selector": selector("reports"), "asked_at": DbLater(-9)}
    for holder in ("web-2 <b>", "web-3"):
        Ticket.objects.create(**waits, holder=holder, busy_before=DbLater(60))
    shown = page(admin_client, "election", "change", "reports")
    assert shown.index("web-2 &lt;b&gt;") < shown.index("web-3")
