"""Reading: in order, from where one says, at least once, and on from where one was."""

import datetime
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from resourcepool.exceptions import BadOption, ClaimInTransaction, LeaseLost, MessagesMissed
from resourcepool.locks import Channel
from resourcepool.locks.channels import position
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.channels.poller import Poller, WaitingSubscriber, pollers
from resourcepool.models import Subscription
from tests.committed import Statement
from tests.eventually import InBackground, eventually
from tests.locks.channels.reading import LONG, all_of, channel_row, durable, filled


def test_a_subscriber_gets_what_is_published_after_it_has_begun_and_in_that_order() -> None:
    channel = filled(2)
    with channel.subscribe() as first:
        channel.publish("a")
        with channel.subscribe() as second:
            channel.publish("b")
            assert (all_of(first), all_of(second)) == (["a", "b"], ["b"])
    assert not Subscription.objects.exists()


def test_a_message_has_its_number_payload_time_and_publisher() -> None:
    reader = Channel("c").subscribe()
    before = timezone.now()
    Channel("c").publish({"level": 3})
    message: Any = reader.get(timeout=0)
    assert (message.number, message.payload) == (1, {"level": 3})
    assert abs(message.published_at - before) < datetime.timedelta(minutes=1)
    assert f"/{threading.current_thread().name}/" in message.publisher


@pytest.mark.parametrize(
    ("from_", "expected"), [("now", []), ("start", [1, 2, 3]), (2, [2, 3]), (4, []), (5, [])]
)
@pytest.mark.parametrize("name", [None, "a"])
def test_it_begins_where_one_says(name: str | None, from_: Any, expected: list[int]) -> None:
    with filled(3).subscribe(name, from_=from_) as reader:
        assert all_of(reader) == expected
        for number in (4, 5, 6):
            Channel("c").publish(number)
        assert all_of(reader) == ([4, 5, 6] if from_ != 5 else [5, 6])


def test_it_begins_at_a_moment() -> None:
    filled(3)
    for number in (1, 2, 3):
        at = timezone.now() - datetime.timedelta(hours=3 - number)
        MessageRow.objects.filter(number=number).update(published_at=at)
    moment = timezone.now() - datetime.timedelta(minutes=90)
    assert all_of(Channel("c").subscribe(from_=moment)) == [2, 3]
    assert all_of(Channel("c").subscribe(from_=timezone.now() + datetime.timedelta(hours=1))) == []
    assert all_of(Channel("c").subscribe(from_=timezone.now() - datetime.timedelta(days=1))) == [1, 2, 3]


@pytest.mark.parametrize(
    "from_",
    ["then", 0, -1, True, 1.5, None, 2**63, datetime.datetime(2026, 1, 1), b"now"],  # noqa: DTZ001
)
def test_it_begins_nowhere_else(from_: Any) -> None:
    with pytest.raises(BadOption, match="from_="):
        Channel("c").subscribe(from_=from_)


@pytest.mark.parametrize("name", [None, "a"])
def test_what_was_removed_before_it_was_read_is_said_and_reading_goes_on_after_it(name: str | None) -> None:
    channel = filled(6)
    reader = channel.subscribe(name, from_=2)
    MessageRow.objects.filter(number__lte=4).delete()
    who = "subscription 'a'" if name else "an unnamed subscriber"
    with pytest.raises(
        MessagesMissed, match=rf"channel 'c': messages 2 to 4 \(3\) were removed before {who}"
    ) as missed:
        next(reader)
    assert (missed.value.first, missed.value.last, missed.value.count) == (2, 4, 3)
    assert all_of(reader) == [5, 6]
    MessageRow.objects.all().delete()
    channel.publish(7)
    channel.publish(8)
    MessageRow.objects.all().delete()
    with pytest.raises(MessagesMissed, match="messages 7 to 8 "):
        reader.get(timeout=5)
    assert reader.get(timeout=0) is None
    if name:
        assert (durable().cursor, durable().missed) == (8, 5)


def test_a_gap_in_the_middle_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = filled(6).subscribe(from_="start")
    MessageRow.objects.filter(number__in=(3, 4)).delete()
    assert [next(reader).payload, next(reader).payload] == [1, 2]
    with pytest.raises(MessagesMissed, match="3 to 4"):
        next(reader)
    assert all_of(reader) == [5, 6]


def test_a_channel_that_was_removed_and_made_again_is_read_from_its_first_message() -> None:
    channel = filled(5)
    reader, named = channel.subscribe(), channel.subscribe("a")
    ChannelRow.objects.all().remove()
    filled(2)
    assert reader.get(timeout=LONG).payload == 1
    assert all_of(reader) == [2]
    with pytest.raises(LeaseLost, match="was removed"):
        named.get(timeout=LONG)


def test_many_messages_are_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position, "BATCH", 3)
    assert all_of(filled(10).subscribe(from_="start")) == list(range(1, 11))


def test_it_waits_for_what_is_published_by_others_and_by_its_own_process() -> None:
    reader = Channel("c").subscribe()
    waiting = InBackground(lambda: next(reader).payload)
    eventually(lambda: pollers.on("default")._waiting)
    Channel("c").publish("a")
    assert waiting.result() == "a"
    waiting = InBackground(lambda: next(reader).payload)
    eventually(lambda: pollers.on("default")._waiting)
    with transaction.atomic():
        ChannelRow.objects.update(last=2)
        MessageRow.objects.create(channel_id="c", number=2, payload='"b"')
    assert waiting.result() == "b"


def test_a_timeout_and_stop_end_the_iteration_and_it_may_go_on() -> None:
    stopping: list[int] = []
    reader = Channel("c").subscribe(timeout=0.05, stop=lambda: bool(stopping))
    assert list(reader) == []
    Channel("c").publish(1)
    assert [message.payload for message in reader] == [1]
    forever = Channel("c").subscribe(stop=lambda: bool(stopping))
    waiting = InBackground(lambda: list(forever))
    eventually(lambda: pollers.on("default")._waiting)
    stopping.append(1)
    assert waiting.result() == []


def test_all_subscribers_of_a_process_look_with_one_statement(statements: list[Statement]) -> None:
    readers = [Channel(f"c{number}").subscribe() for number in range(8)]
    waiting = [InBackground(lambda one=one: one.get(timeout=LONG)) for one in readers]
    eventually(lambda: len(pollers.on("default")._waiting) == 8)
    del statements[:]
    eventually(lambda: sum(len(find(statements)) for _ in range(1)) >= 2)
    for one in find(statements):
        assert one.thread == "resourcepool-background-default"
    assert all(one.thread.startswith("resourcepool-") for one in statements)
    for number in range(8):
        Channel(f"c{number}").publish(number)
    assert [one.result().payload for one in waiting] == list(range(8))


def find(statements: list[Statement]) -> list[Statement]:
    return [one for one in statements if "channel" in one.sql.lower() and "IN (" in one.sql]


def test_nothing_is_read_inside_a_transaction() -> None:
    reader = filled(1).subscribe(from_="start")
    with transaction.atomic():
        with pytest.raises(ClaimInTransaction):
            Channel("c").subscribe()
        with pytest.raises(ClaimInTransaction):
            reader.get(timeout=0)
    assert all_of(reader) == [1]


def test_a_session_that_was_opened_for_reading_is_closed_while_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resourcepool.locks.channels.subscriber.SESSION_KEPT", 0.0)
    monkeypatch.setattr("resourcepool.locks.channels.subscriber.POLL", 0.01)
    if connection.vendor == "sqlite":
        pytest.skip("it has no sessions")
    found: list[Any] = []

    def wait() -> None:
        reader = Channel("c").subscribe(stop=lambda: bool(found.append(connection.connection)) or None in found)
        list(reader)

    InBackground(wait).result()
    assert None in found


def test_one_that_was_made_again_is_told_at_the_next_look_though_its_numbers_are_lower() -> None:
    filled(5)
    told: list[int] = []
    wake_event = SimpleNamespace(is_orphaned=False, wake=lambda: told.append(1))
    look, one = Poller("default"), WaitingSubscriber("c", 9, 1, wake_event)
    look._waiting[one] = None
    look._turn()
    assert told == [1]
    assert (one.last, one.made) == (5, channel_row().made)
