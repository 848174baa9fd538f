"""What the dashboard shows of channels: a line for each."""

from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.status.channels import ChannelStatus, channels


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One channel.

    Attributes:
        id: of its link on the page.
        state: "up", or "dead" (somebody does not read, or has lost messages), for the style sheet.
        page, messages, durable: addresses of its page, and of those lists; "" when there is none.
    """

    id: str
    one: ChannelStatus
    state: str
    page: str
    messages: str
    durable: str


def channel_rows(links: Links, *, is_with_subscriptions: bool) -> list[ChannelRow]:
    """Return a line for each channel: three queries, one if there is none.

    Args:
        is_with_subscriptions: whether the names of subscriptions are for whoever asks.
    """
    found = channels()
    return [
        ChannelRow(
            f"rpc{number}",
            one,
            "dead" if one.because else "up",
            links.page(Broadcast, one.name),
            links.list(BroadcastMessage, channel=one.name),
            links.list(Subscription, channel=one.name, standing="durable"),
        )
        for number, one in enumerate(found if is_with_subscriptions else [one.discreet() for one in found])
    ]
