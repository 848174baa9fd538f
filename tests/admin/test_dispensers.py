"""Dispensers, their buckets and tasks in the admin."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from resourcepool.models import Bucket, Dispenser, DispenserTask
from tests.admin.test_streams import page
from tests.app.rows import change
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviews() -> Dispenser:
    """Two tasks are ready, alice has one, bob's bucket has expired, one task has failed."""
    made = dispenser()
    tasks("a", "b")
    bucket("alice", "c")
    bucket("bob", "d", lasts=-1)
    failed("e", outcome="too <often>")
    return made


def test_the_list_of_dispensers_says_what_waits_who_has_what_and_why_nothing_is_handed_out(
    admin_client: Client, reviews: Dispenser
) -> None:
    dispenser("empty")
    shown = page(admin_client, "dispenser", "changelist")
    for part in (
        "at work",
        "it has no unfinished tasks",
        ">1</a>, 1</td>",  # buckets: live, expired
        '<td class="field-figure_6">-</td>',  # never rebuilt
    ):
        assert part in shown
    assert "?dispenser=reviews&amp;state=ready" in shown
    failed("f", name="empty")
    shown = page(admin_client, "dispenser", "changelist")
    assert "only failed tasks" in shown
    assert "failed tasks to retry or discard: 1" in shown
    assert "<dt>Buckets live, expired</dt>" in page(admin_client, "dispenser", "change", "reviews")


def test_saving_a_form_writes_what_was_edited_and_not_what_others_wrote(
    admin_client: Client, reviews: Dispenser
) -> None:
    change(reviews, is_paused=True)
    address = reverse("admin:resourcepool_dispenser_change", args=["reviews"])
    answer = admin_client.post(address, {"most_expirations": "3", "done_kept": "60"})
    assert answer.status_code == 302
    row = Dispenser.objects.get()
    assert (row.most_expirations, row.done_kept, row.is_paused) == (3, 60, True)


def test_only_a_dispenser_without_tasks_can_be_deleted_and_none_is_added_by_hand(
    admin_client: Client, reviews: Dispenser
) -> None:
    dispenser("empty")
    for name, expected in (("reviews", 403), ("empty", 200)):
        address = reverse("admin:resourcepool_dispenser_delete", args=[name])
        assert admin_client.get(address).status_code == expected
    assert admin_client.get(reverse("admin:resourcepool_dispenser_add")).status_code == 403
    assert "delete_selected" not in page(admin_client, "dispenser", "changelist")


def test_buckets_are_shown_with_their_tasks_and_found_by_dispenser_state_and_name(
    admin_client: Client, reviews: Dispenser
) -> None:
    bucket("alice", "x", "y", name=dispenser("other").name)
    assert "3 buckets" in page(admin_client, "bucket", "changelist")
    assert "2 buckets" in page(admin_client, "bucket", "changelist", q="alice")
    assert "1 bucket" in (shown := page(admin_client, "bucket", "changelist", q="alice", dispenser="other"))
    assert ">2</a>" in shown
    assert "1 bucket" in (shown := page(admin_client, "bucket", "changelist", status="expired"))
    assert "reviews/bob" in shown or ">bob<" in shown
    assert "2 buckets" in page(admin_client, "bucket", "changelist", status="live")
    assert "alice" in page(admin_client, "bucket", "change", Bucket.objects.get(dispenser="other").pk)


def test_tasks_are_shown_with_their_errors_and_found_by_dispenser_state_bucket_and_key(
    admin_client: Client, reviews: Dispenser
) -> None:
    shown = page(admin_client, "dispensertask", "changelist", dispenser="reviews", state="failed")
    assert "too &lt;often&gt;" in shown
    assert "1 dispenser task" in shown
    assert "0 dispenser tasks" in page(admin_client, "dispensertask", "changelist", dispenser="other")
    assert "1 dispenser task" in page(admin_client, "dispensertask", "changelist", q="b")
    assert "0 dispenser tasks" in page(admin_client, "dispensertask", "changelist", bucket="carol")
    shown = page(admin_client, "dispensertask", "changelist", bucket="alice")
    assert "1 dispenser task" in shown
    assert "reviews/alice" in shown
    failed_one = page(admin_client, "dispensertask", "change", DispenserTask.objects.get(key="e").pk)
    assert "Retry" in failed_one
    assert "Discard" in failed_one


def test_a_score_is_a_number_and_no_duration(admin_client: Client, reviews: Dispenser) -> None:
    DispenserTask.objects.filter(key="a").update(score=90)
    shown = page(admin_client, "dispensertask", "change", DispenserTask.objects.get(key="a").pk)
    assert "90.0<" in shown.partition("field-score")[2].partition("field-status_badge")[0]
    assert '<td class="field-score">90.0</td>' in page(admin_client, "dispensertask", "changelist", q="a")


def test_a_list_of_tasks_takes_as_many_statements_as_one_of_one_task(
    admin_client: Client, reviews: Dispenser, django_assert_max_num_queries: Any
) -> None:
    bucket("carol", *(f"c{number}" for number in range(40)))
    with django_assert_max_num_queries(7):
        page(admin_client, "dispensertask", "changelist")
    with django_assert_max_num_queries(7):
        page(admin_client, "bucket", "changelist")
