"""Under one name one process at a time reads; who has lost the name changes nothing."""

import re

import pytest
from django.db import transaction

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.locks.channels.subscription import SubscriptionLease, SubscriptionSource
from resourcepool.models import Subscription
from tests.app.rows import expire, steal
from tests.eventually import InBackground
from tests.locks.channels.reading import LONG, all_of, durable, filled


def test_one_process_at_a_time_reads_under_a_name_and_the_next_one_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = filled(2)
    first = channel.subscribe("a", from_="start")
    said = f"subscription 'a' of channel 'c' did not become free within 0 s: read by {durable().holder}"
    with pytest.raises(AcquireTimeout, match=f"^{re.escape(said)}$"):
        channel.subscribe("a", timeout=0)
    second = InBackground(lambda: channel.subscribe("a", timeout=LONG))
    next(first)
    next(first)
    first.close()
    reader = second.result()
    assert [reader.get(timeout=0).payload, reader.get(timeout=0)] == [2, None]
    assert (first.get(timeout=0), first.get()) == (None, None)


@pytest.mark.parametrize("step", ["_send_release", "store"])
def test_what_a_signal_raises_when_the_name_is_given_up_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def interrupted(*_: object) -> bool:
        raise TimeoutError("alarm")

    reader = filled(2).subscribe("a", from_="start")
    assert [next(reader).payload, next(reader).payload] == [1, 2]
    monkeypatch.setattr(SubscriptionLease, step, interrupted)
    with pytest.raises(TimeoutError, match="alarm"):
        reader.close()
    assert keeper.leases() == []


def test_a_subscriber_without_a_name_whose_lease_ran_out_goes_on_where_it_was() -> None:
    reader = filled(3).subscribe(from_="start")
    next(reader)
    expire(Subscription.objects.get())
    reader._position.lease._lose("it was frozen")
    assert all_of(reader) == [2, 3]


def test_one_that_was_removed_is_not_made_again() -> None:
    reader = filled(3).subscribe("a", from_="start")
    next(reader)
    Subscription.objects.all()._raw_delete("default")
    reader._position.lease._lose("removed")
    with pytest.raises(LeaseLost, match="subscription 'a' of channel 'c' was removed"):
        reader.get(timeout=0)
    assert not Subscription.objects.exists()


def test_neither_a_message_nor_a_traceback_keeps_a_subscription(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError) as error:
        for message in filled(1).subscribe("a", from_="start"):
            print(1 / (message.payload - 1))
    assert error.tb.tb_frame.f_locals["message"] is message
    keeper._report_leaks("default")
    assert keeper.leases() == []
    with pytest.raises(LeaseLost, match="message 1 is not done: its subscriber was garbage-collected"):
        message.done()
    assert not caplog.records


def test_a_name_comes_free_though_the_cursor_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise DatabaseUnavailable("away")

    reader = filled(2).subscribe("a", from_="start")
    assert [next(reader).payload, next(reader).payload] == [1, 2]
    monkeypatch.setattr(SubscriptionLease, "store", fail)
    reader.close()
    assert keeper.leases() == []
    monkeypatch.undo()
    with Channel("c").subscribe("a", timeout=0) as other:
        assert all_of(other) == [1, 2]


def test_a_message_of_an_earlier_turn_is_not_done_in_a_later_one() -> None:
    reader = filled(3).subscribe("a", from_="start")
    old = next(reader)
    steal(durable(), "another one")
    Subscription.objects.update(cursor=2)  # it has read the same, and written what comes of it
    reader._position.lease._lose("stolen")
    expire(durable())
    new = next(reader)
    assert new.number == 3
    with (
        pytest.raises(LeaseLost, match="message 1 was read before the lease of 'a' was lost"),
        transaction.atomic(),
    ):
        old.done()
    new.done()
    assert durable().cursor == 3


def test_a_message_of_a_channel_that_was_removed_passes_over_none_of_the_new_one() -> None:
    reader = filled(2).subscribe(from_="start")
    old = [next(reader), next(reader)][1]
    ChannelRow.objects.all().remove()
    filled(2)
    assert reader.get(timeout=0).number == 1
    with pytest.raises(LeaseLost, match="or the channel removed"):
        old.done()
    assert reader.cursor == 0
    assert all_of(reader) == [2]


@pytest.mark.parametrize("name", [None, "a"])
def test_one_that_stands_still_just_as_it_begins_waits_for_its_turn_again(
    monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    channel, begin, thieves = filled(2), SubscriptionSource.begin, list[object]()

    def late(self: SubscriptionSource, lease: SubscriptionLease) -> Subscription:
        if not thieves:
            row = Subscription.objects.get(pk=lease.pk)
            thieves.append(steal(row, "another one, which has died by now"))
            expire(row)
        return begin(self, lease)

    monkeypatch.setattr(SubscriptionSource, "begin", late)
    with channel.subscribe(name, from_="start") as reader:
        assert all_of(reader) == [1, 2]
    assert thieves
