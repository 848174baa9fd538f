"""Dispensers, buckets, their tasks and their alarms in Chinese, with no English text left."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation

from resourcepool.db.dialect import DbLater
from resourcepool.events import sentence_for
from resourcepool.models import Bucket, Dispenser, DispenserTask
from resourcepool.status.work.dispensers import dispenser_alarms, dispensers
from tests.admin.conftest import sign_in
from tests.locale.reading import helps_without_chinese, panel, read_in_both
from tests.locale.test_commands import CHINESE, chinese
from tests.locale.test_pages import CHINESE as ASKED
from tests.locale.test_queues import in_english
from tests.management.command_runner import run
from tests.taskqueue.dispenser_rows import bucket, dispenser, failed, tasks

__all__ = ["chinese"]

DISPENSERS, BUCKETS, TASKS = (
    f"/admin/resourcepool/{kind}/" for kind in ("dispenser", "bucket", "dispensertask")
)
NAMES = {"reviews", "idle", "alice", "bob", "superuser", "film", "JSON"}


def english(text: str) -> set[str]:
    """Return the words of a text that are neither Chinese nor names."""
    return in_english(text) - NAMES


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def reviews(committed: None) -> Iterator[Dispenser]:
    """A task of each state, a live bucket and an expired one; idle has nothing."""
    made = dispenser()
    tasks("1", "2")
    bucket("alice", "3")
    bucket("bob", "4", lasts=-1)
    failed("5", outcome=sentence_for("bucket_expired", count=5))
    dispenser("idle")
    yield made
    for model in (DispenserTask, Bucket, Dispenser):
        model.objects.all().delete()


@pytest.mark.parametrize(
    "url",
    [
        *(DISPENSERS, f"{DISPENSERS}reviews/change/", f"{DISPENSERS}idle/change/"),
        f"{DISPENSERS}reviews/operate/pause/",
        *(BUCKETS, f"{BUCKETS}{{bucket}}/change/", f"{BUCKETS}{{bucket}}/operate/revoke/"),
        *(TASKS, f"{TASKS}?state=ready", f"{TASKS}{{task}}/change/"),
        *(f"{TASKS}{{task}}/operate/{order}/" for order in ("retry", "discard")),
    ],
)
def test_a_page_is_in_chinese(client: Client, reviews: Dispenser, url: str) -> None:
    keys = {"task": DispenserTask.objects.get(key="5").pk, "bucket": Bucket.objects.get(name="alice").pk}
    there = url.format(**keys)
    read_in_both(client, there, english)


def test_the_dashboard_is_in_chinese(client: Client, reviews: Dispenser) -> None:
    shown = panel(client, "rp-dispensers")
    assert "没有未完成的任务" in shown
    assert not english(shown)


def test_what_came_of_it_is_said_in_chinese(client: Client, reviews: Dispenser) -> None:
    alice = Bucket.objects.get(name="alice").pk
    answer = client.post(f"{BUCKETS}{alice}/operate/revoke/", {"confirmed": "yes"}, follow=True, **ASKED)
    assert "已收回：任务桶 reviews/alice。" in answer.content.decode()


def test_why_nothing_is_handed_out_and_alarms_are_in_chinese(reviews: Dispenser) -> None:
    with translation.override("zh-hans"):
        DispenserTask.objects.filter(key="1").update(added_at=DbLater(-7_200))
        DispenserTask.objects.filter(state="assigned").update(assigned_at=DbLater(-7_200))
        DispenserTask.objects.filter(state="done").update(finished_at=DbLater(-7_200))
        found = [str(alarm) for alarm in dispenser_alarms(dispensers(), 600)]
        assert len(found) == 2
        assert all(one.startswith("任务分发器：reviews: ") for one in found)
        reasons = [one.explanation for one in dispensers()]
        Bucket.objects.filter(name="alice").delete()
        reasons += [one.explanation for one in dispensers()]
        DispenserTask.objects.filter(state="ready").delete()
        reasons += [one.explanation for one in dispensers()]
        Bucket.objects.all().delete()
        reasons += [one.explanation for one in dispensers()]
        assert len({*reasons}) == 5  # one of them is ""
        assert not english(" ".join([*found, *reasons]))


@pytest.mark.parametrize(
    "words",
    [
        *(("tasks", "reviews"), ("tasks", "nix"), ("tasks", "reviews", "--after", "zz")),
        *((), ("show", "reviews"), ("show", "nix"), ("--watch", "9", "pause", "reviews")),
        *(("pause", "nix"), ("pause", "reviews"), ("resume", "reviews"), ("retry", "reviews", "nix")),
        *(("retry", "reviews", "5"), ("retry", "reviews", "1"), ("retry", "reviews")),
        *(("retry", "reviews", "--state", "failed"), ("retry", "reviews", "--state", "discarded")),
        *(
            ("discard", "reviews", "3", "--reason", "无"),
            ("revoke", "reviews", "alice"),
            ("revoke", "reviews", "nix"),
        ),
        *(("add", "reviews", "6", "1"), ("add", "reviews", "6"), ("add", "reviews", "6", "1", "6", "2")),
        *(("add", "reviews", "6", "nix"), ("clear", "reviews"), ("clear", "reviews", "--yes")),
    ],
)
def test_the_command_speaks_chinese(reviews: Dispenser, chinese: None, words: tuple[str, ...]) -> None:
    ran = run("dispenser", *words)
    assert CHINESE.search(ran.all)
    typed = {"nix", "dispenser", "key", "keys", "score", "failed", "discarded", "yes", "show", "tasks", "alice"}
    assert not {word.lower() for word in english(ran.all)} - typed


def test_the_help_of_each_word_is_in_chinese(chinese: None) -> None:
    assert helps_without_chinese("resourcepool_dispenser") == []


def test_programs_are_answered_in_english(reviews: Dispenser, chinese: None) -> None:
    ran = run("dispenser", "show", "--json")
    assert ran.code == 0
    assert not CHINESE.search(ran.all)
