"""A channel that is removed while somebody begins to read: no subscription outlives its channel."""

import pytest

from resourcepool.database.answers import answer_timeout
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.locks import Channel
from resourcepool.locks.channels import subscription
from resourcepool.models import Broadcast, Subscription
from tests.locking import locked
from tests.locks.channels.reading import broadcast, filled


def remove_made(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Have somebody remove the channel just after it was made, so many times."""
    make, left = subscription.make, [None] * times

    def made(using: str, channel: Broadcast) -> None:
        make(using, channel)
        if left:
            left.pop()
            Broadcast.objects.filter(pk=channel.name).remove()

    monkeypatch.setattr(subscription, "make", made)


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
    with locked(broadcast()), answer_timeout(1), pytest.raises(DatabaseUnavailable):
        Channel("c").subscribe("a")
    assert not Subscription.objects.exists()
