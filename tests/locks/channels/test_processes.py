"""Real processes read: killed, stopped, and told by hints."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction

from resourcepool import hints
from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import LeaseFromAnotherProcess
from resourcepool.locks import Channel
from resourcepool.locks.channels import poller
from resourcepool.models import Subscription
from tests.locks.channels.reading import all_of, filled
from tests.processes import forked


@pytest.mark.parametrize("name", [None, "a"])
def test_a_fork_neither_reads_nor_ends_the_subscription_of_its_parent(name: str | None) -> None:
    with Channel("c").subscribe(name) as messages:
        before = Subscription.objects.values_list("pk", "fence", "busy_before").get()

        def read() -> None:
            with pytest.raises(LeaseFromAnotherProcess):
                messages.get(timeout=0)
            messages.close()

        assert forked(read)
        assert Subscription.objects.values_list("pk", "fence", "busy_before").get() == before
        filled(1)
        assert all_of(messages) == [1]


def test_the_processes_that_listen_are_told_after_the_commit(monkeypatch: Any) -> None:
    told: list[int] = []
    fakes = {"is_enabled": lambda: True, "send": told.append, "address": lambda: 1, "listen": id}
    monkeypatch.setattr(poller, "hints", SimpleNamespace(**{**vars(hints), **fakes}))
    monkeypatch.setattr(poller.pollers, "_addresses", {})
    filled(0)
    for address, seconds in ((1, 60), (5, 60), (6, -60), (0, 60), (5, 60)):
        row = {"channel_id": "c", "address": address, "busy_before": DbLater(seconds)}
        Subscription.objects.create(name=f"s{address}{len(told)}{Subscription.objects.count()}", **row)
    with transaction.atomic():
        Channel("c").publish(1)
        assert told == []
    assert told == [5]
    Channel("other").publish(1)
    assert told == [5]
