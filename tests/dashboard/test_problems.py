"""Problems on the dashboard: by gravity and system, each with what ends it beside it."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from resourcepool.db.dialect import DbLater
from resourcepool.locks.channels.models import Channel, Message
from resourcepool.models import Event, Proxy, Server, Stream, Subscription, Task, Timer
from resourcepool.taskqueue import submit
from tests.admin.queues.scene import queue_group, server
from tests.app.rows import granted, hold, new
from tests.dashboard.test_views import client_with, text_of
from tests.status.locks.conftest import A, B, held_by, lock, waits
from tests.waiting.threads import ticket

SNOOZE = "/admin/resourcepool/dashboard/snooze/"
BLOCKED = "blocked stream: oracle"


@pytest.fixture
def operator() -> Client:
    """Return a client of an operator with all permissions on this app, but not on the test's pool without a table."""
    ours = Permission.objects.filter(content_type__app_label="resourcepool")
    return client_with(*ours.values_list("codename", flat=True))


def block(name: str = "oracle", key: str = "req-42") -> Task:
    """Block a stream by its first task."""
    granted(Stream.objects.create(name=name), "web-1")
    submit(name, "note", key=key)
    Task.objects.filter(stream_id=name).update(state="blocked", outcome="disk full")
    return Task.objects.get(stream_id=name)


def deadlock() -> None:
    lock("orders", A)
    lock("stock", B)
    waits("lock", "stock", A, waited=900)
    waits("lock", "orders", B, waited=800)


def problem(text: str, about: str) -> str:
    """Return the HTML of the problem about this subject."""
    (found,) = (one for one in re.findall(r'<li class="rp-problem".*?</li>', text, re.DOTALL) if about in one)
    return found


class TestOrder:
    def test_they_are_counted_and_what_is_critical_comes_first_grouped_by_system(
        self, operator: Client
    ) -> None:
        block("a")
        block("b")
        new(Proxy, in_service=False, status="out_of_service")
        ticket(Proxy)
        text = text_of(operator)
        assert "<b>3 critical</b>" in text
        assert "<b>1 warning</b>" in text, "the sweep has never run"
        assert '<details class="rp-severity rp-is-critical" id="rp-critical" open>' in text
        order = [text.index(mark) for mark in ("<h3>Proxies", "<h3>Streams", 'id="rp-warnings"', "<h3>Jobs")]
        assert order == sorted(order)
        assert text.count("<h3>Streams") == 1


class TestWhatEndsThem:
    def test_a_blocked_stream_leads_to_its_task_and_retry_is_one_press(self, operator: Client) -> None:
        task = block()
        shown = problem(text_of(operator), "stream: oracle")
        assert f'href="/admin/resourcepool/task/{task.pk}/change/"' in shown
        (address,) = re.findall(r'form="rp-run" formaction="([^"]+)" name="action" value="retry"', shown)
        back = reverse("admin:resourcepool_dashboard_changelist")
        answer = operator.post(address, {"confirmed": "yes", "action": "retry"})
        assert answer["Location"] == back
        task.refresh_from_db()
        assert task.state == "ready"

    def test_a_destructive_operation_asks_first_and_comes_back_here(self, operator: Client) -> None:
        task = block()
        shown = problem(text_of(operator), "stream: oracle")
        (address,) = re.findall(r'class="button rp-destructive" href="([^"]+/discard/[^"]+)"', shown)
        assert "Discard (finish it without running it)" in text_of(operator, address)
        answer = operator.post(address, {"confirmed": "yes", "reason": "no longer wanted"})
        assert answer["Location"] == reverse("admin:resourcepool_dashboard_changelist")
        task.refresh_from_db()
        assert task.state == "discarded"

    def test_a_deadlock_offers_to_revoke_the_lock_that_its_text_names(self, operator: Client) -> None:
        deadlock()
        shown = problem(text_of(operator), "wait cycle")
        (name,) = re.findall(r"resourcepool_locks revoke (\w+)", shown)
        assert f'href="/admin/resourcepool/lock/{name}/change/">locks: lock {name}</a>' in shown
        assert f"/admin/resourcepool/lock/{name}/operate/revoke/" in shown
        assert f"/admin/resourcepool/lock/{name}/operate/revoke-holder/" in shown
        page = text_of(operator, f"/admin/resourcepool/lock/{name}/operate/revoke/")
        assert f"{held_by({'orders': A, 'stock': B}[name])['holder']} holds lock {name}" in page

    def test_an_exhausted_pool_offers_what_is_out_of_service(self, operator: Client) -> None:
        hold(new(Proxy))
        ticket(Proxy, asked_at=DbLater(-900))
        assert "return_to_service" not in problem(text_of(operator), "[exhausted]")
        Proxy.objects.filter(pk=new(Proxy).pk).drain("move")
        new(Proxy, in_service=False, status="reserved")
        shown = problem(text_of(operator), "[exhausted]")
        assert "Not in service: 1 out of service, 1 reserved." in shown
        (address,) = re.findall(r'formaction="([^"]+)" name="action" value="return_to_service"', shown)
        assert address == "/admin/resourcepool/proxy/?state=out"

    def test_failed_tasks_are_retried_all_at_once_after_a_question(self, operator: Client) -> None:
        for key in ("a", "b"):
            submit(Stream.objects.get_or_create(name="oracle")[0].name, "note", key=key)
        Task.objects.update(state="dead", finished_at=DbLater(-5))
        shown = problem(text_of(operator), "failed for good")
        (address,) = re.findall(r'form="rp-run-all" formaction="([^"]+)" name="action" value="retry"', shown)
        (form,) = re.findall(r'id="rp-run-all">(.+?)</form>', text_of(operator), re.DOTALL)
        posted = {"action": "retry", **dict(re.findall(r'name="(_?sel[^"]+)" value="(\d)"', form))}
        page = operator.post(address.replace("&amp;", "&"), posted).content.decode()
        assert "2 selected." in page
        operator.post(address.replace("&amp;", "&"), {**posted, "confirmed": "yes", "reason": ""})
        assert {task.state for task in Task.objects.all()} == {"ready"}

    def test_a_server_that_hangs_can_be_drained(self, operator: Client) -> None:
        server(queue_group("orders", 2), "A")
        Server.objects.update(last_activity_at=DbLater(-3_000), busy_before=DbLater(900), ttl=900)
        shown = problem(text_of(operator), "queues: orders")
        assert f"/admin/resourcepool/server/{Server.objects.get().pk}/operate/drain/" in shown

    def test_what_would_change_nothing_is_not_offered(self, operator: Client) -> None:
        made = server(queue_group("orders", 2), "A")
        Server.objects.update(
            last_activity_at=DbLater(-3_000), busy_before=DbLater(900), ttl=900, state="draining"
        )
        assert f"/admin/resourcepool/server/{made.pk}/operate/drain/" not in text_of(operator)
        channel = Channel.objects.create(name="config", last=2)
        Message.objects.create(channel=channel, number=2, payload="1", published_at=DbLater(-3_000))
        key = Subscription.objects.create(channel=channel, name="indexer", cursor=1, **held_by(A)).pk
        offered = f"/admin/resourcepool/subscription/{key}/operate/%s/"
        shown = problem(text_of(operator), "indexer")
        assert (offered % "move" in shown, offered % "remove" in shown) == (True, False), "it has a reader"
        Subscription.objects.update(holder="", busy_before=DbLater(-5))
        assert offered % "remove" in problem(text_of(operator), "indexer")

    def test_waiters_lead_to_who_waits_and_why(self, operator: Client) -> None:
        new(Proxy, in_service=False, status="out_of_service")
        ticket(Proxy)
        shown = problem(text_of(operator), "no resource in service")
        assert 'href="/admin/resourcepool/dashboard/waiting/?of=resourcepool.Proxy"' in shown

    def test_who_may_only_look_gets_no_buttons(self) -> None:
        block()
        shown = problem(text_of(client_with("view_stream", "view_task")), "stream: oracle")
        assert "/change/" in shown
        assert "button" not in shown
        User.objects.all().delete()
        assert "/task/" not in problem(text_of(client_with("view_stream", "operate_task")), "stream: oracle")

    def test_another_site_is_no_next_page(self, operator: Client) -> None:
        task = block()
        address = f"/admin/resourcepool/task/{task.pk}/operate/retry/?next=https://evil.example/"
        answer = operator.post(address, {"confirmed": "yes"})
        assert answer["Location"] == f"/admin/resourcepool/task/{task.pk}/change/"


class TestSnoozing:
    def test_a_snoozed_alarm_is_folded_away_for_everybody_with_a_name(self, operator: Client) -> None:
        block()
        assert operator.post(SNOOZE, {"alarm": BLOCKED}).status_code == 302
        User.objects.all().delete()
        text = text_of(client_with("view_stream"))
        assert "1 critical" not in text
        assert '<details class="rp-severity rp-is-snoozed" id="rp-snoozed">' in text
        assert "by user, 60 min left" in problem(text, "stream: oracle")

    def test_another_alarm_of_the_same_kind_is_not_snoozed_and_it_can_be_shown_again(
        self, operator: Client
    ) -> None:
        block()
        block("mails")
        operator.post(SNOOZE, {"alarm": BLOCKED})
        text = text_of(operator)
        assert "<b>1 critical</b>" in text
        assert f'name="end" value="{BLOCKED}"' in text
        operator.post(SNOOZE, {"end": BLOCKED})
        assert "<b>2 critical</b>" in text_of(operator)

    def test_it_needs_a_post_a_login_and_a_token(self, operator: Client) -> None:
        assert operator.get(SNOOZE).status_code == 405
        assert Client().post(SNOOZE, {"alarm": BLOCKED}).status_code == 302
        client = Client(enforce_csrf_checks=True)
        client.force_login(User.objects.get())
        assert client.post(SNOOZE, {"alarm": BLOCKED}).status_code == 403
        assert not Event.objects.exists()

    def test_who_may_only_look_cannot_snooze(self) -> None:
        block()
        client = client_with("view_stream", "view_task")
        assert "Snooze" not in text_of(client)
        assert client.post(SNOOZE, {"alarm": BLOCKED}).status_code == 403
        assert not Event.objects.exists()

    def test_any_text_is_answered(self, operator: Client) -> None:
        for text in ("", "x" * 5_000, "a\x00b", "<script>alert(1)</script>"):
            assert operator.post(SNOOZE, {"alarm": text}).status_code == 302
        assert "<script>alert" not in text_of(operator)


def test_a_late_timer_leads_to_itself(operator: Client) -> None:
    from tests.browser.demo_tasks import timers

    timers()
    Timer.objects.filter(topic_id="report", state="pending").update(
        busy_before=DbLater(-600), due_at=DbLater(-600)
    )
    late = Timer.objects.filter(topic_id="report", state="pending").order_by("pk").first()
    assert late is not None
    shown = problem(text_of(operator), "is 10 min late")
    assert f"/admin/resourcepool/timer/{late.pk}/" in shown


def test_an_operator_without_other_rights_may_snooze_what_they_see() -> None:
    block()
    client = client_with("view_stream", "operate_stream")
    assert Permission.objects.filter(codename="operate_stream").exists()
    assert client.post(SNOOZE, {"alarm": BLOCKED}).status_code == 302
    assert "by user" in text_of(client)
