"""A view, in a transaction of its own or not: what it publishes counts with its commit."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from resourcepool.exceptions import ClaimInTransaction
from resourcepool.locks import Channel, Condition, Lock, Semaphore
from resourcepool.locks.channels.models import Message as MessageRow
from resourcepool.locks.models import Lock as LockRow
from tests.locks.channels.reading import LONG, kept


def publish(request: HttpRequest) -> HttpResponse:
    """Publish, and perhaps fail."""
    Channel("c").publish("from a view")
    if "fail" in request.GET:
        raise ZeroDivisionError
    return HttpResponse(str(MessageRow.objects.count()))


def take(request: HttpRequest) -> HttpResponse:
    """Take a lock."""
    with Lock("report", timeout=1):
        return HttpResponse("taken")


@transaction.non_atomic_requests
def all_of_it(request: HttpRequest) -> HttpResponse:
    """Take a lock, and in it publish in a transaction, and read."""
    with Lock("report") as held, Channel("c").subscribe("view", timeout=LONG) as messages:
        with transaction.atomic(), held.guard():
            Channel("c").publish("guarded")
        message: Any = messages.get()
        with transaction.atomic():
            message.done()
        return HttpResponse(message.payload)


WAYS: dict[str, Callable[[], object]] = {
    "semaphore": lambda: Semaphore("s").acquire(),
    "subscribe": lambda: Channel("c").subscribe("a"),
    "wait": lambda: Condition(Lock("x")).__enter__(),
}


def each(request: HttpRequest, way: str) -> HttpResponse:
    """Do what is not allowed in a transaction."""
    WAYS[way]()
    return HttpResponse("done")


urlpatterns = [path("publish", publish), path("take", take), path("all", all_of_it), path("each/<way>", each)]


@pytest.fixture
def client(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    yield Client()
    connection.close()


def test_what_a_view_publishes_counts_with_its_commit(client: Client) -> None:
    with Channel("c").subscribe(timeout=LONG) as reader:
        with pytest.raises(ZeroDivisionError):
            client.get("/publish?fail")
        assert kept() == []
        assert client.get("/publish").content == b"1"
        message = next(reader)
        assert (message.number, message.payload) == (1, "from a view")


def test_a_view_with_a_transaction_takes_no_lock_and_leaves_nothing(client: Client) -> None:
    with pytest.raises(ClaimInTransaction, match="ATOMIC_REQUESTS"):
        client.get("/take")
    assert not LockRow.objects.held().exists()


@pytest.mark.parametrize("way", WAYS)
def test_nor_does_it_wait_or_read(client: Client, way: str) -> None:
    with pytest.raises(ClaimInTransaction):
        client.get(f"/each/{way}")
    assert connection.get_autocommit()


def test_one_without_does_all_of_it(client: Client) -> None:
    assert [client.get("/all").content for _ in range(2)] == [b"guarded", b"guarded"]
    assert not LockRow.objects.held().exists()
