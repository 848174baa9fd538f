"""Whatever anybody does in whatever order, subscribers get what this model of a channel says."""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from resourcepool.exceptions import LeaseLost, MessagesMissed
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.models import Subscription
from tests.app.rows import expire
from tests.state_machines import check

NAMES = ("a", "b")


class Reader:
    """A subscriber, what it should get next, and up to where all is done for sure."""

    def __init__(self, channel: Channel, name: str | None) -> None:
        self.channel, self.name = channel, name
        self.subscriber: Subscriber | None = None
        self.next, self.in_hand = 1, 0
        self.message: Any = None

    def open(self) -> Subscriber:
        if self.subscriber is None:
            self.subscriber = self.channel.subscribe(self.name, from_="start")
        return self.subscriber

    @property
    def stored(self) -> int:
        return int(Subscription.objects.values_list("cursor", flat=True).get(name=self.name))


class AChannel(RuleBasedStateMachine):
    """A channel with two durable subscriptions and a listener."""

    def __init__(self) -> None:
        super().__init__()
        _clear()
        self.channel = Channel("c")
        self.sent: list[int] = []  # payloads; the number is the place
        self.removed = 0  # up to this number
        self.readers = {name: Reader(self.channel, name) for name in (*NAMES, None)}
        for reader in self.readers.values():
            reader.open()

    @rule(payload=st.integers(0, 9), count=st.integers(1, 3))
    def publish(self, payload: int, count: int) -> None:
        with transaction.atomic():
            for _ in range(count):
                assert self.channel.publish(payload) == len(self.sent) + 1
                self.sent.append(payload)

    @rule()
    def publish_and_roll_back(self) -> None:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            self.channel.publish("never")
            raise ZeroDivisionError

    @rule(name=st.sampled_from([*NAMES, None]))
    def read(self, name: str | None) -> None:
        reader = self.readers[name]
        wanted = reader.next
        try:
            message = reader.open().get(timeout=0)
        except MessagesMissed as missed:
            assert (missed.first, missed.last) == (wanted, self.removed)  # noqa: PT017 (it need not be raised)
            reader.next, reader.in_hand, reader.message = self.removed + 1, 0, None
            return
        reader.in_hand, reader.message = 0, message
        if message is None:
            assert wanted == len(self.sent) + 1
            return
        assert message.number == wanted
        assert message.payload == self.sent[wanted - 1]
        reader.in_hand, reader.next = wanted, wanted + 1

    @rule(name=st.sampled_from([*NAMES, None]), rolls_back=st.booleans())
    def done(self, name: str | None, rolls_back: bool) -> None:
        reader = self.readers[name]
        if reader.message is None or reader.subscriber is None:
            return
        if rolls_back and name:
            before = reader.stored
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                reader.message.done()
                raise ZeroDivisionError
            assert reader.stored == before
        else:
            reader.message.done()
            assert name is None or reader.stored >= reader.message.number
            reader.in_hand = 0

    @rule(name=st.sampled_from(NAMES))
    def close(self, name: str) -> None:
        """What is in hand comes again."""
        reader = self.readers[name]
        reader.open().close()
        reader.next = (reader.in_hand or reader.next) if reader.next > reader.in_hand else reader.next
        reader.subscriber, reader.in_hand, reader.message = None, 0, None
        assert reader.stored == reader.next - 1

    @rule(name=st.sampled_from(NAMES))
    def die(self, name: str) -> None:
        """The process is killed: another one reads from the cursor that was stored, which may be earlier."""
        reader = self.readers[name]
        if reader.subscriber is not None and (lease := reader.subscriber._position.lease) is not None:
            lease._stop_renewing()
            expire(Subscription.objects.get(name=name))
        assert reader.stored < (reader.in_hand or reader.next)
        reader.next = reader.stored + 1
        reader.subscriber, reader.in_hand, reader.message = None, 0, None

    @rule(name=st.sampled_from(NAMES))
    def freeze(self, name: str) -> None:
        """Another process takes the name over: the frozen one can move nothing, and waits for its turn."""
        reader = self.readers[name]
        frozen, message = reader.open(), reader.message
        expire(Subscription.objects.get(name=name))
        with self.channel.subscribe(name) as other:
            before = reader.stored
            if message is not None and message.number > before:
                with pytest.raises(LeaseLost):
                    message.done()
            elif frozen._position.lease is not None:
                frozen._position.lease._lose("it finds out")
            assert reader.stored == before == other.cursor
        reader.next, reader.in_hand, reader.message = reader.stored + 1, 0, None

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def prune(self, data: st.DataObject) -> None:
        self.removed = data.draw(st.integers(self.removed, len(self.sent)))
        ChannelRow.objects.get().remove_up_to(self.removed)

    @invariant()
    def the_messages_are_there_and_no_cursor_is_ahead(self) -> None:
        numbers = list(MessageRow.objects.order_by("number").values_list("number", flat=True))
        assert numbers == list(range(self.removed + 1, len(self.sent) + 1))
        for name in NAMES:
            assert self.readers[name].stored < self.readers[name].next

    def teardown(self) -> None:
        for reader in self.readers.values():
            if reader.subscriber is not None:
                reader.subscriber.close()
        _clear()


def _clear() -> None:
    for model in (MessageRow, Subscription, ChannelRow):
        model.objects.all()._raw_delete("default")


@pytest.mark.timeout(1_200)  # the long form takes minutes
def test_subscribers_get_nothing_else() -> None:
    check(AChannel)
