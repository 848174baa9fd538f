"""Streams and tasks in the admin."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from resourcepool.db.dialect import DbLater
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import NewTask, submit_many
from tests.app.rows import change, granted

pytestmark = pytest.mark.django_db


@pytest.fixture
def oracle() -> Stream:
    row: Stream = Stream.objects.create(name="oracle")
    submit_many("oracle", [NewTask("note", {"n": 1}, key=key) for key in "abc"])
    Task.objects.filter(key="a").update(state="blocked", outcome="disk <full>")
    return row


def page(client: Client, model: str, view: str, *args: Any, **query: str) -> str:
    answer = client.get(reverse(f"admin:resourcepool_{model}_{view}", args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def operate(client: Client, model: str, action: str, keys: list[Any], **entered: str) -> str:
    address = reverse(f"admin:resourcepool_{model}_changelist")
    chosen = {"action": action, "_selected_action": [str(key) for key in keys], "confirmed": "yes"}
    answer = client.post(address, {**chosen, "select_across": "0", **entered}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_of_streams_says_why_nothing_runs(admin_client: Client, oracle: Stream) -> None:
    shown = page(admin_client, "stream", "changelist")
    assert "no consumer is leading" in shown
    assert '<td class="field-figure_0">-</td>' in shown  # its leader
    assert "oracle" in page(admin_client, "stream", "change", "oracle")


def test_only_a_stream_with_a_leader_and_tasks_is_called_at_work(admin_client: Client) -> None:
    row = Stream.objects.create(name="idle")
    assert "nothing to do" in (shown := page(admin_client, "stream", "changelist"))
    assert "at work" not in shown
    submit_many("idle", [NewTask("note")])
    assert ">no consumer<" in page(admin_client, "stream", "changelist")
    granted(row, "web-1")
    assert "at work" in (shown := page(admin_client, "stream", "changelist"))
    assert "nothing to do" not in shown
    Task.objects.update(busy_before=DbLater(90))
    assert ">waiting for a retry<" in (shown := page(admin_client, "stream", "changelist"))
    assert "at work" not in shown
    Task.objects.update(state="blocked")
    assert ">blocked<" in page(admin_client, "stream", "changelist")
    Stream.objects.update(lanes=2)
    assert ">partly blocked<" in page(admin_client, "stream", "changelist")


def test_the_page_of_a_stream_shows_the_blocking_task_and_retries_it_at_once(
    admin_client: Client, oracle: Stream
) -> None:
    Task.objects.exclude(key="a").update(state="blocked")
    Task.objects.filter(key="a").update(finished_at=None)
    shown = page(admin_client, "stream", "change", "oracle")
    first = Task.objects.get(key="a")
    work = shown.partition('id="resourcepool-work"')[2].partition("</section>")[0]
    assert work.index(f"task/{first.pk}/change/") < work.index(f"task/{first.pk + 1}/change/")
    assert "disk &lt;full&gt;" in work
    url = work.partition('formaction="')[2].partition('"')[0].replace("&amp;", "&")
    answer = admin_client.post(url, {"confirmed": "yes"}, follow=True)
    assert answer.redirect_chain == [(reverse("admin:resourcepool_stream_change", args=["oracle"]), 302)]
    assert "Task oracle/a is ready again." in answer.content.decode()
    assert Task.objects.get(key="a").state == "ready"
    assert Task.objects.filter(state="blocked").count() == 2


def test_tasks_that_block_their_lanes_are_on_the_page_before_older_ones(
    admin_client: Client, oracle: Stream
) -> None:
    Stream.objects.update(lanes=2)
    Task.objects.update(state="ready")
    Task.objects.filter(key="c").update(state="blocked")
    shown = page(admin_client, "stream", "change", "oracle")
    work = shown.partition('id="resourcepool-work"')[2].partition("</section>")[0]
    assert f"task/{Task.objects.get(key='c').pk}/change/" in work
    assert f"task/{Task.objects.get(key='a').pk}/change/" not in work


def test_saving_a_form_writes_what_was_edited_and_not_what_the_leader_wrote(
    admin_client: Client, oracle: Stream
) -> None:
    change(oracle, elected_term=7, address=9)
    address = reverse("admin:resourcepool_stream_change", args=["oracle"])
    names = ("on_failure", "retry_delay", "max_crashes", "lanes", "term_ttl", "lock_delay", "done_kept")
    form = {name: getattr(oracle, name) for name in names}
    assert admin_client.post(address, {**form, "retries": "5"}).status_code == 302
    row = Stream.objects.get()
    assert (row.retries, row.elected_term, row.address) == (5, 7, 9)


def test_an_instance_that_was_read_before_the_term_began_does_not_undo_that(oracle: Stream) -> None:
    change(oracle, elected_term=7, resigned_term=6, address=9)
    oracle.retries = 5
    oracle.save()
    row = Stream.objects.get()
    assert (row.retries, row.elected_term, row.resigned_term, row.address) == (5, 7, 6, 9)


def test_tasks_are_shown_with_their_errors_and_found_by_stream_state_and_key(
    admin_client: Client, oracle: Stream
) -> None:
    shown = page(admin_client, "task", "changelist", stream="oracle", status="blocked")
    assert "disk &lt;full&gt;" in shown
    assert "1 task" in shown
    assert "0 tasks" in page(admin_client, "task", "changelist", stream="other")
    assert "1 task" in page(admin_client, "task", "changelist", q="b")
    task = page(admin_client, "task", "change", Task.objects.get(key="a").pk)
    assert "{&quot;n&quot;: 1}" in task
    assert "Retry" in task


@pytest.mark.parametrize("how", ["page", "action"])
def test_a_stream_with_tasks_is_not_deleted_and_its_tasks_are_not_read_for_that(
    admin_client: Client, oracle: Stream, how: str
) -> None:
    Stream.objects.create(name="empty")
    with CaptureQueriesContext(connection) as sent:
        if how == "page":
            shown = page(admin_client, "stream", "delete", "oracle")
            admin_client.post(reverse("admin:resourcepool_stream_delete", args=["oracle"]), {"post": "yes"})
        else:
            chosen = {"action": "delete_selected", "_selected_action": ["oracle", "empty"], "post": "yes"}
            shown = admin_client.post(reverse("admin:resourcepool_stream_changelist"), chosen).content.decode()
    assert "?stream=oracle" in shown
    assert "oracle/a" not in shown
    assert not [one["sql"] for one in sent if Task._meta.get_field("params").column in one["sql"]]
    assert Stream.objects.filter(name="oracle").exists()
    assert Task.objects.count() == 3


def test_a_stream_without_tasks_is_deleted(admin_client: Client) -> None:
    Stream.objects.create(name="empty")
    admin_client.post(reverse("admin:resourcepool_stream_delete", args=["empty"]), {"post": "yes"})
    assert not Stream.objects.exists()


def test_every_stream_is_on_some_page_of_the_list_and_a_page_costs_as_much_as_another(
    admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    Stream.objects.bulk_create([Stream(name=f"{number:03d}", is_paused=number == 220) for number in range(230)])
    address, seen = reverse("admin:resourcepool_stream_changelist"), set[str]()
    for number in range(1, 6):
        with django_assert_max_num_queries(12):
            answer = admin_client.get(address, {"p": number})
        seen |= {row.name for row in answer.context["cl"].result_list}
    assert len(seen) == 230
    with django_assert_max_num_queries(12):
        answer = admin_client.get(address, {"status": "paused"})
    assert [row.name for row in answer.context["cl"].result_list] == ["220"]


@pytest.mark.parametrize(
    ("standing", "count"), [("no-consumer", 1), ("blocked", 1), ("busy", 1), ("paused", 0), ("x", 1)]
)
def test_streams_are_filtered_by_how_they_stand(
    admin_client: Client, oracle: Stream, standing: str, count: int
) -> None:
    answer = admin_client.get(reverse("admin:resourcepool_stream_changelist"), {"status": standing})
    assert len(answer.context["cl"].result_list) == count


def test_unfinished_tasks_of_a_stream_are_listed_in_the_order_in_which_they_run(
    admin_client: Client, oracle: Stream
) -> None:
    address = reverse("admin:resourcepool_task_changelist")
    for query, keys in (
        ({"stream": "oracle", "status": "unfinished"}, "abc"),
        ({"stream": "oracle", "status": "blocked"}, "a"),
        ({"stream": "oracle"}, "cba"),  # the newest first
        ({"status": "unfinished"}, "cba"),
    ):
        rows = admin_client.get(address, query).context["cl"].result_list
        assert "".join(row.key for row in rows) == keys, query
