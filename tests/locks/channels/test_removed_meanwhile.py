"""A channel that is removed while somebody begins to read: no subscription outlives its channel."""

import pytest
from django.db import transaction

from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Subscription
from tests.aliases import alias
from tests.eventually import InBackground
from tests.locking import locked
from tests.locks.channels.reading import channel_row, filled
from tests.queues.test_planning_transactions import repeatable_read


def remove_made(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Have somebody remove the channel just after it was made, so many times."""
    ensure, left = ChannelRow.ensure, [None] * times

    def made(channel: ChannelRow, using: str) -> None:
        ensure(channel, using)
        if left:
            left.pop()
            ChannelRow.objects.filter(pk=channel.name).remove()

    monkeypatch.setattr(ChannelRow, "ensure", made)


@pytest.mark.parametrize("name", [None, "a"])
def test_it_is_made_again(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    remove_made(monkeypatch, 1)
    with Channel("c").subscribe(name) as reader:
        filled(2)
        assert [next(reader).payload, next(reader).payload] == [1, 2]


def test_who_cannot_begin_is_told_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    remove_made(monkeypatch, 3)
    with pytest.raises(LeaseLost, match=r"^channel 'c' is being removed$"):
        Channel("c").subscribe("a")
    assert not Subscription.objects.exists()


@pytest.mark.only("mysql", "postgresql")
def test_who_begins_waits_for_who_removes() -> None:
    filled(1)
    with locked(channel_row()), statement_timeout(1), pytest.raises(DatabaseUnavailable):
        Channel("c").subscribe("a")
    assert not Subscription.objects.exists()


@pytest.mark.only("mysql")  # PostgreSQL refuses what was changed since the transaction began
def test_removing_messages_ends_in_a_transaction_that_sees_what_others_have_removed_since() -> None:
    filled(2)
    remove = lambda: MessageRow.objects.all()._raw_delete("default")  # noqa: E731
    strange = alias("strange", leased=False, OPTIONS={"isolation_level": repeatable_read()})
    with strange as using, transaction.atomic(using=using):
        channel = ChannelRow.objects.using(using).get()
        assert MessageRow.objects.using(using).count() == 2  # its moment
        InBackground(remove).result(30)
        assert not channel.remove_up_to(channel.last)
