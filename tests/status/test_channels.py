"""How the channels stand, and what is wrong with them."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import Election as ElectionRow, selector
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Subscription
from resourcepool.status.elections import ELECTIONS
from resourcepool.status.locks.channels import channels
from tests.app.rows import change, expire, granted, new
from tests.waiting.threads import ticket

pytestmark = pytest.mark.django_db


def channel(name: str = "c", *, last: int = 3, first: int = 1, **columns: Any) -> ChannelRow:
    row: ChannelRow = ChannelRow.objects.create(name=name, last=last, **columns)
    rows = [MessageRow(channel=row, number=number, payload="1") for number in range(first, last + 1)]
    MessageRow.objects.bulk_create(rows)
    return row


def subscription(name: str, cursor: int, *, of: str = "c", **columns: Any) -> Subscription:
    row: Subscription = Subscription.objects.create(channel_id=of, name=name, cursor=cursor, **columns)
    return row


def test_a_channel_says_what_is_kept_and_who_reads() -> None:
    channel(last=5, first=3)
    MessageRow.objects.filter(number=3).update(published_at=DbLater(-120))
    granted(subscription("a", 4), "web-1")
    subscription("b", 5)
    granted(subscription("host/1", 0, is_durable=False), "host/1")
    subscription("host/2", 0, is_durable=False)
    channel("empty", last=0)
    one, empty = channels()
    assert (one.name, one.last, one.kept, one.published, one.listeners, one.unread) == ("c", 5, 3, 2, 1, 1)
    assert [(each.name, each.holder, each.unread, each.lost) for each in one.subscriptions] == [
        ("a", "web-1", 1, 0),
        ("b", "", 0, 0),
    ]
    assert 0 < one.subscriptions[0].behind < 60
    assert (empty.kept, empty.published, empty.unread, empty.explanation) == (0, 0, 0, "")
    assert one.explanation == ""
    assert one.redacted().subscriptions[0].name == ""


def test_a_pruned_channel_keeps_its_numbers() -> None:
    channel(last=5, first=6)
    subscription("a", 2)
    (one,) = channels()
    assert (one.kept, one.published, one.subscriptions[0].lost, one.subscriptions[0].unread) == (0, 0, 3, 3)


# Who leads, and who could.


def test_a_leader_is_told_with_its_term_and_the_standbys_of_this_election_alone() -> None:
    row = new(ElectionRow, name="reports")
    grant = granted(row, "web-1")
    change(row, elected_at=DbLater(-90), elected_term=grant.fence)
    for name in ("reports", "reports", "others"):
        ticket(ElectionRow, selector=selector(name))
    one = ELECTIONS.get("reports")
    assert (one.leader, one.term, one.standbys, one.explanation) == ("web-1", grant.fence, 2, "")
    assert one.since >= 90
    assert 0 < one.expires_in <= 60.01


def test_how_long_it_leads_is_unknown_until_that_is_stored() -> None:
    row = new(ElectionRow, name="reports", elected_at=DbLater(-90))
    granted(row, "web-2")
    assert ELECTIONS.get("reports").since is None


def test_a_leader_that_died_leads_no_more() -> None:
    row = new(ElectionRow, name="reports")
    granted(row, "web-1")
    expire(row)
    one = ELECTIONS.get("reports")
    assert (one.leader, one.since, one.expires_in) == ("", None, None)
    assert one.explanation == "no leader and no standbys"
