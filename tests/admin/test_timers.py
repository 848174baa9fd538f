"""Topics, timers and nodes in the admin."""

import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from resourcepool.models import Timer, TimerNode, Topic
from tests.admin.test_streams import page
from tests.app.rows import expire, granted

pytestmark = pytest.mark.django_db
TOPIC = "order.timeout"


def timer(name: str, due_in: float = 3600, **columns: Any) -> Timer:
    moment = timezone.now() + datetime.timedelta(seconds=due_in)
    row: Timer = Timer.objects.create(
        name=name, topic_id=TOPIC, due_at=moment, busy_before=moment, payload='{"n": 1}', **columns
    )
    return row


@pytest.fixture
def topic() -> Topic:
    row: Topic = Topic.objects.create(name=TOPIC, requires={"zone": "eu"})
    timer("a")
    timer("b", -600)
    timer("c", state="dead", finished_at=timezone.now(), outcome="disk <full>")
    return row


def node(**columns: Any) -> TimerNode:
    row: TimerNode = TimerNode.objects.create(name="web-1 <b>", topics=[TOPIC], **columns)
    granted(row, "web-1")
    return row


def test_the_list_of_topics_says_what_is_late_and_why_nothing_fires(admin_client: Client, topic: Topic) -> None:
    shown = page(admin_client, "topic", "changelist")
    for text in (
        ">no node<",
        "no live node handles it; start one: <code>manage.py resourcepool_timers</code>",
        '<td class="field-figure_4">10 min</td>',  # late by
    ):
        assert text in shown
    assert f"{reverse('admin:resourcepool_timer_changelist')}?topic={TOPIC}&amp;status=dead" in shown
    node(labels={"zone": "eu"})
    assert ">late<" in (shown := page(admin_client, "topic", "change", TOPIC))
    assert "<dt>Nodes</dt>" in shown
    Timer.objects.filter(name="b").delete()
    assert ">nothing due<" in page(admin_client, "topic", "change", TOPIC)


def test_a_late_timer_is_marked(admin_client: Client, topic: Topic) -> None:
    for name, css in (("a", "idle"), ("b", "bad"), ("c", "bad")):
        shown = page(admin_client, "timer", "changelist", q=name)
        assert f'<span class="resourcepool-state {css}">' in shown, name


def test_timers_of_a_topic_that_are_to_fire_are_listed_in_that_order(
    admin_client: Client, topic: Topic
) -> None:
    timer("d", -60)
    timer("e", holder="beat")
    address = reverse("admin:resourcepool_timer_changelist")
    for standing, names in (("unfinished", "bdae"), ("due", "bd"), ("handed", "e")):
        rows = admin_client.get(address, {"topic": TOPIC, "status": standing}).context["cl"].result_list
        assert "".join(row.name for row in rows) == names


def test_the_settings_of_a_topic_are_edited_and_a_pause_meanwhile_stays(
    admin_client: Client, topic: Topic
) -> None:
    address = reverse("admin:resourcepool_topic_change", args=[TOPIC])
    names = ("retry_delay", "max_crashes", "ttl", "done_kept")
    form = {name: getattr(topic, name) for name in names} | {"least_version": "2.10", "requires": ""}
    form["initial-requires"] = '{"zone": "eu"}'  # as the page has it
    assert admin_client.post(address, {**form, "retries": "5"}).status_code == 302
    row = Topic.objects.get()
    assert (row.retries, row.least_version, row.requires) == (5, "2.10", {})
    answer = admin_client.post(address, {**form, "retries": "6", "requires": '{"zone": 1}'})
    assert "Each label and its value must" in answer.content.decode()
    assert Topic.objects.get().retries == 5


def test_nobody_adds_topics_timers_or_nodes(admin_client: Client, topic: Topic) -> None:
    for model in ("topic", "timer", "timernode"):
        assert admin_client.get(reverse(f"admin:resourcepool_{model}_add")).status_code == 403


def test_a_topic_that_has_timers_is_not_deleted_and_they_are_not_listed(
    admin_client: Client, topic: Topic
) -> None:
    address = reverse("admin:resourcepool_topic_delete", args=[TOPIC])
    shown = admin_client.get(address).content.decode()
    assert f"{TOPIC} has timers" in shown
    assert f"{TOPIC}/a" not in shown
    admin_client.post(address, {"post": "yes"})
    assert Topic.objects.exists()
    Timer.objects.all().delete()
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not Topic.objects.exists()


def test_timers_are_found_by_topic_state_lateness_and_whole_name(admin_client: Client, topic: Topic) -> None:
    for count, query in (
        (3, {"topic": TOPIC}),
        (0, {"topic": "other"}),
        (2, {"status": "unfinished"}),
        (1, {"status": "due"}),
        (1, {"status": "late"}),
        (1, {"status": "dead"}),
        (1, {"q": "b"}),
        (0, {"q": "order"}),
    ):
        shown = page(admin_client, "timer", "changelist", **query)
        assert f"{count} timer" in shown, query
    shown = page(admin_client, "timer", "changelist")
    assert "disk &lt;full&gt;" in shown
    assert "due for 10 min" in shown
    assert "in 60 min" in shown or "in 59 min" in shown
    assert "{&quot;n&quot;: 1}" not in shown


def test_the_page_of_a_timer_shows_its_payload_and_offers_what_makes_sense(
    admin_client: Client, topic: Topic
) -> None:
    shown = page(admin_client, "timer", "change", Timer.objects.get(name="a").pk)
    assert "{&quot;n&quot;: 1}" in shown
    assert "Fire now" in shown
    assert "Retry" not in shown
    shown = page(admin_client, "timer", "change", Timer.objects.get(name="c").pk)
    assert "Retry" in shown
    assert "Fire now" not in shown


def test_one_that_is_handed_over_does_not_look_as_if_it_were_due_in_a_minute(
    admin_client: Client, topic: Topic
) -> None:
    row = timer("d", 40, holder="web-1")
    for shown in (page(admin_client, "timer", "changelist"), page(admin_client, "timer", "change", row.pk)):
        assert "handed over, not yet claimed" in shown


def test_before_an_act_the_page_asks(admin_client: Client, topic: Topic) -> None:
    address = reverse("admin:resourcepool_timer_changelist")
    chosen = {
        "action": "cancel",
        "_selected_action": [str(Timer.objects.get(name="a").pk)],
        "select_across": "0",
    }
    answer = admin_client.post(address, chosen)
    assert "A recurring timer that is running finishes this run" in answer.content.decode()
    assert not Timer.objects.filter(state="cancelled").exists()


def test_nodes_are_shown_with_what_they_are_and_whether_they_live(admin_client: Client) -> None:
    row = node(labels={"zone": "eu"}, version="2.10")
    shown = page(admin_client, "timernode", "changelist")
    for text in ("web-1 &lt;b&gt;", "zone=eu", "2.10", TOPIC, "alive"):
        assert text in shown
    expire(row)
    assert "lost contact" in page(admin_client, "timernode", "change", row.pk)


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ('{"every": 300.0}', "every 5 min"),
        ('{"every": 1234567.5}', "every 1,234,567.5 s"),
        ('{"cron": "30 7 * * 1-5", "tz": "Europe/Berlin"}', "30 7 * * 1-5 (Europe/Berlin)"),
        ('{"never": 1}', "{&quot;never&quot;: 1}"),  # written past validation
        ("17", "17"),
    ],
)
def test_a_schedule_is_spelled_for_people(admin_client: Client, topic: Topic, kept: str, shown: str) -> None:
    row = timer("d", schedule=kept)
    assert f">{shown}</td>" in page(admin_client, "timer", "changelist")
    assert f">{shown}</div>" in page(admin_client, "timer", "change", row.pk)
