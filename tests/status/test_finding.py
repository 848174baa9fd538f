"""Whatever an operator has at hand is found, and answered in sentences."""

from typing import Any

import pytest
from django.apps import apps

from resourcepool.db.dialect import DbLater
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import DispenserTask, Event, Proxy, Queue, Server, Stream, Task
from resourcepool.status.finding import Found, find_everything
from resourcepool.taskqueue import TaskDispenser, submit
from tests.admin.queues.scene import queue_group, server
from tests.app.models import Device
from tests.app.rows import granted, hold, new, several
from tests.status.locks.conftest import A, B, lock, waits
from tests.waiting.threads import ticket

pytestmark = pytest.mark.django_db
EVERYTHING = frozenset(apps.get_models())


def found(text: str, *, models: Any = (Proxy, Device), visible: Any = EVERYTHING) -> list[Found]:
    return [*find_everything(text, models, visible)]


def only(text: str, **who: Any) -> Found:
    (one,) = found(text, **who)
    return one


def test_a_number_finds_the_resource_with_its_holder() -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler-7")
    one = only(str(proxy.pk))
    assert one.title.startswith(f"Proxy {proxy.pk}: ")
    assert (one.model, one.key) == (Proxy, proxy.pk)
    assert one.sentences[0].startswith("State: leased, held by: crawler-7, ")
    assert one.sentences[1].startswith("It is leased until the holder releases it")


def test_an_address_finds_it_too_and_no_password_is_repeated() -> None:
    proxy = new(Proxy, host="198.51.100.7", username="joe", password="hunter2")
    assert only("198.51.100.7:3128").key == proxy.pk
    (one,) = found("http://joe:hunter2@198.51.100.7:3128")
    assert "hunter2" not in str(one)


@pytest.mark.parametrize("text", ["crawler3", "crawler3/4711", "crawler3/4711/main/1"])
def test_a_holder_a_process_and_a_host_find_what_they_hold(text: str) -> None:
    proxy = new(Proxy)
    hold(proxy, holder="crawler3/4711/main/1")
    (one,) = found(text)
    assert one.title.startswith("Holder crawler3")
    assert one.sentences == ["Resources that it holds: 1."]
    assert one.related[0][:2] == (Proxy, proxy.pk)


def test_a_waiter_reads_its_place_and_why_it_waits() -> None:
    hold(new(Proxy))
    ticket(Proxy, holder="first", asked_at=DbLater(-9))
    ticket(Proxy, holder="second", asked_at=DbLater(-8))
    one = only("second")
    assert "number 2 in line. Matching resources: 0 free" in one.sentences[0]


def test_a_lock_finds_its_holder_and_its_waiters() -> None:
    lock("orders", A)
    waits("lock", "orders", B)
    one = only("orders")
    assert one.title == "Lock orders"
    assert one.sentences[0].startswith("Held by web-1/4711/worker-1; expires in ")
    assert one.sentences[2].startswith("Waiters: 1, the first for ")
    assert (one.model, one.key) == (LockRow, "orders")


def test_a_host_finds_the_locks_it_holds() -> None:
    lock("orders", A)
    one = only("web-1/4711")
    assert one.sentences == ["It holds lock orders."]
    assert one.related == [(LockRow, "orders", "lock orders")]


@pytest.mark.parametrize("text", ["req-42", "oracle/req-42"])
def test_a_task_is_found_by_its_key_in_any_container(text: str) -> None:
    Stream.objects.create(name="oracle")
    submit("oracle", "note", key="req-42")
    Task.objects.update(state="blocked", outcome="OSError: disk full")
    one = only(text)
    assert one.title == "Task oracle/req-42"
    assert one.sentences == ["Blocked.", "OSError: disk full"]
    assert one.key == Task.objects.get().pk


def test_a_task_of_a_dispenser_is_found_too() -> None:
    TaskDispenser("films").add_many({"film-1": 1})
    assert only("film-1").model is DispenserTask


def test_a_stream_says_why_nothing_runs() -> None:
    granted(Stream.objects.create(name="oracle"), "web-1")
    submit("oracle", "note", key="a")
    Task.objects.update(state="blocked", outcome="disk full")
    one = only("oracle")
    assert one.title == "Stream oracle"
    assert "leader: web-1" in one.sentences[0]
    assert one.sentences[1] == "Blocked by task a: disk full. Retry or discard the task."


def test_queues_and_servers_are_found() -> None:
    orders = queue_group("orders", 2)
    running = server(orders, "web-9")
    assert [one.model for one in found("web-9")] == [Server]
    assert only(f"web-9 #{Server.objects.get().pk}").model is Server, running
    assert only(Queue.objects.first().queue_id).model is Queue
    assert only("orders").sentences[0].endswith("1 servers.")


def test_an_operator_is_found_by_name_with_the_last_deeds() -> None:
    Event.objects.create(
        at=DbLater(-120), what="revoked", pool="resourcepool.proxy", row="17", actor="maria", reason="hangs"
    )
    one = only("maria")
    assert one.sentences == ["2 min ago: maria revoked proxy 17 from an unknown process: hangs"]
    assert one.filters == {"who": "maria"}


def test_what_may_not_be_viewed_is_not_found() -> None:
    lock("orders", A)
    Stream.objects.create(name="orders")
    submit("orders", "note", key="req-42")
    Event.objects.create(at=DbLater(-1), what="retried", pool="resourcepool.task", row="1", actor="maria")
    several(Proxy, 1, country="de")
    for text in ("orders", "req-42", "maria", "de"):
        assert found(text, models=(), visible=frozenset()) == []
    assert found("maria", visible=frozenset({Event})) == [], "events of tasks quote errors"


@pytest.mark.parametrize(
    "text", ["", "   ", "a\x00b", "\x1b[31m", "%", "_", "'; --", "x" * 999, "/", "#", "9" * 30]
)
def test_any_text_is_answered(text: str) -> None:
    queue_group("orders", 1)
    new(Proxy)
    found(text)


def test_a_number_sign_a_kind_before_the_name_and_other_capitals_find_the_same() -> None:
    proxy = new(Proxy)
    assert only(f"#{proxy.pk}").key == proxy.pk
    lock("stock", A)
    for text in ("lock stock", "Lock stock", "locks: lock stock"):
        assert (only(text).model, only(text).key) == (LockRow, "stock")
    assert found("semaphore stock") == []
    Event.objects.create(at=DbLater(-120), what="revoked", pool="resourcepool.proxy", row="17", actor="alice")
    assert only("Alice").title == "Operator alice"
    assert only("Alice").filters == {"who": "alice"}
