"""A view, in a transaction of its own or not: what it publishes counts with its commit."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from resourcepool.exceptions import ClaimInTransaction
from resourcepool.locks import Channel, Lock
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


urlpatterns = [path("publish", publish), path("take", take)]


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
