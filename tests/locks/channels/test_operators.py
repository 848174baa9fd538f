"""What operators do to channels and subscriptions, and what the history tells of it."""

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import LeaseLost, MessagesMissed
from resourcepool.history.models import Event
from resourcepool.history.recorder import recorder
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Subscription
from resourcepool.signals import subscription_missed
from resourcepool.sweeps.pruning import prune_channels
from tests.app.rows import expire
from tests.history.fixtures import history  # noqa: F401 (a fixture)
from tests.locks.channels.reading import all_of, channel_row, durable, filled, kept


def told() -> list[tuple[str, str, str]]:
    recorder.flush()
    return list(Event.objects.order_by("pk").values_list("what", "actor", "reason"))


@pytest.mark.parametrize(("to", "expected"), [("start", [2, 3, 4]), ("now", []), ("3", [3, 4]), ("1", None)])
def test_a_cursor_is_moved_and_whoever_reads_goes_on_there(to: str, expected: list[int] | None) -> None:
    reader = filled(4).subscribe("a", from_=3)
    MessageRow.objects.filter(number=1).delete()
    next(reader)
    fence = durable().fence
    assert Subscription.objects.move(to, actor="alice") == 1
    assert durable().fence > fence
    in_hand = reader
    reader._position.lease._lose("as the keeper finds out")
    if expected is None:
        with pytest.raises(MessagesMissed, match="1 to 1"):
            in_hand.get(timeout=0)
        expected = [2, 3, 4]
    assert all_of(in_hand) == expected
    reader.close()
    assert told()[0] == ("moved", "alice", f"c/a: {to}")


def test_a_number_that_is_not_published_yet_is_now_and_nothing_is_passed_over() -> None:
    channel = filled(4)
    reader = channel.subscribe("a", from_="start")
    reader.close()
    assert Subscription.objects.move("3000", actor="alice") == 1
    assert durable().cursor == 4
    channel.publish(5)
    assert all_of(channel.subscribe("a")) == [5]


def test_a_late_done_does_not_undo_an_operators_move() -> None:
    message = next(filled(4).subscribe("a", from_="start"))
    Subscription.objects.move("4")
    with pytest.raises(LeaseLost):
        message.done()
    assert durable().cursor == 3


def test_a_subscription_is_removed_unless_somebody_reads() -> None:
    filled(1)
    with Channel("c").subscribe("a"):
        assert Subscription.objects.remove(actor="alice") == 0
    assert Subscription.objects.remove(actor="alice") == 1
    assert not Subscription.objects.exists()
    assert told() == [("deleted", "alice", "c/a")]


def test_a_channel_is_pruned_and_its_numbers_go_on() -> None:
    channel = filled(3)
    assert ChannelRow.objects.all().prune(actor="alice") == 1
    assert ChannelRow.objects.all().prune(actor="alice") == 0
    assert (kept(), channel.publish("x")) == ([], 4)
    assert told() == [("discarded", "alice", "c: 3 messages removed")]


def test_a_channel_is_removed_with_all_that_belongs_to_it() -> None:
    filled(1, "other")
    channel = filled(3)
    channel.subscribe("a").close()
    assert ChannelRow.objects.filter(pk="c").remove(actor="alice") == 1
    assert not Subscription.objects.exists()
    assert (kept(), kept("other")) == ([], [1])
    assert channel.publish("anew") == 1
    assert told() == [("deleted", "alice", "c")]


def test_what_a_durable_subscription_missed_is_in_the_history() -> None:
    heard: list[object] = []
    subscription_missed.connect(lambda event, **_: heard.append(event.reason), weak=False, dispatch_uid="test")
    reader = filled(3).subscribe("a", from_="start")
    ChannelRow.objects.all().prune()
    with pytest.raises(MessagesMissed):
        next(reader)
    subscription_missed.disconnect(dispatch_uid="test")
    said = "c/a: messages 1 to 3 were removed before they were read"
    assert heard == [said]
    assert [one[0] for one in told()] == ["missed"]
    assert told()[0][2] == said


def test_old_messages_the_oldest_of_too_many_and_dead_listeners_are_pruned() -> None:
    filled(10, kept_count=4)
    assert (channel_row().kept_count, channel_row().kept) == (4, 7 * 86_400)
    Channel("c").subscribe("a").close()
    dead = Channel("c").subscribe()
    assert prune_channels() == 6
    assert kept() == [7, 8, 9, 10]
    expire(Subscription.objects.get(is_durable=False))
    Subscription.objects.filter(is_durable=False).update(busy_before=DbLater(-100))
    MessageRow.objects.filter(number__lt=9).update(published_at=DbLater(-8 * 86_400))
    assert prune_channels() == 3
    assert kept() == [9, 10]
    assert [one.name for one in Subscription.objects.all()] == ["a"]
    assert prune_channels() == 0
    del dead
