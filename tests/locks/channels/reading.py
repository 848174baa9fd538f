"""What the tests of channels share."""

from typing import Any

from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.models import Subscription

LONG = 30.0  # seconds that only end what hangs


def filled(count: int, name: str = "c", **options: Any) -> Channel:
    """Return a channel with so many messages, each its own number."""
    channel = Channel(name, **options)
    for number in range(1, count + 1):
        channel.publish(number)
    return channel


def all_of(subscriber: Subscriber) -> list[Any]:
    """Return the payloads of everything that is there."""
    found = []
    while (message := subscriber.get(timeout=0)) is not None:
        found.append(message.payload)
    return found


def durable(name: str = "a") -> Subscription:
    found: Subscription = Subscription.objects.get(name=name)
    return found


def kept(name: str = "c") -> list[int]:
    """Return the numbers of the messages that are there."""
    return list(MessageRow.objects.filter(channel_id=name).order_by("number").values_list("number", flat=True))


def channel_row(name: str = "c") -> ChannelRow:
    found: ChannelRow = ChannelRow.objects.get(pk=name)
    return found
