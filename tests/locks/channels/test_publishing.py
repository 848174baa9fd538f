"""Publishing: in one order, by the caller's commit, and never twice though a reply is lost."""

import math
import signal
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption, ChannelFull
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow
from tests.app.rows import audited
from tests.eventually import at_once
from tests.locks.channels.reading import all_of, channel_row, filled, kept
from tests.spawned import Spawner


@pytest.mark.only("mysql")  # these do not send the last insert id then
def test_numbers_are_known_if_the_table_has_a_trigger() -> None:
    channel = Channel("c")
    channel.publish("x")
    with audited(ChannelRow):
        assert [channel.publish("y"), channel.publish("z")] == [2, 3]
    assert kept() == [1, 2, 3]


def test_channels_have_numbers_of_their_own_and_case_counts() -> None:
    assert (Channel("c").publish(1), Channel("C").publish(1), Channel("c").publish(1)) == (1, 1, 2)


@pytest.mark.parametrize("payload", [None, True, 7, "text \0 \n 中文", [1, [2]], {"a": {"b": None}}, 1.5, {}])
def test_whatever_json_can_say_arrives_as_it_was(payload: Any) -> None:
    reader = Channel("c").subscribe()
    Channel("c").publish(payload)
    assert all_of(reader) == [payload]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (math.nan, "payload=nan is not allowed: it must be a JSON value"),
        ({"a": [math.inf]}, "a JSON value"),
        (b"bytes", "payload=b'bytes' is not allowed: it must be a JSON value"),
        (object(), "a JSON value"),
        ({(1, 2): 3}, "a JSON value"),
        ("\ud800", "a JSON value"),
        ("x" * 65_536, "payload='65538 bytes' is not allowed: it must be at most 65536 bytes of JSON"),
    ],
)
def test_other_payloads_are_refused_by_name_value_and_what_is_allowed(payload: Any, said: str) -> None:
    with pytest.raises(BadOption) as refused:
        Channel("c").publish(payload)
    assert said in str(refused.value)
    assert kept() == []


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", " a", "a ", 7, None])
def test_a_name_that_no_database_keeps_as_it_is_is_refused(name: Any) -> None:
    with pytest.raises(BadOption, match="name="):
        Channel(name)
    if name is not None:
        with pytest.raises(BadOption, match="name="):
            Channel("c").subscribe(name)


@pytest.mark.parametrize(
    "options", [{"most": 0}, {"most": "9"}, {"kept": -1}, {"kept": math.nan}, {"kept_count": 0}]
)
def test_other_options_are_refused(options: Any) -> None:
    with pytest.raises(BadOption, match=next(iter(options))):
        Channel("c", **options)


def test_a_channel_is_full_when_a_durable_subscription_has_too_much_to_read() -> None:
    channel = Channel("c", most=2)
    with channel.subscribe("a"), channel.subscribe("b") as quick, channel.subscribe() as fleeting:
        for number in (1, 2):
            channel.publish(number)
        with pytest.raises(
            ChannelFull, match="channel 'c' is full: most=2, 'a' has 2 unread, 'b' has 2 unread"
        ):
            channel.publish(3)
        assert (all_of(quick), all_of(fleeting)) == ([1, 2], [1, 2])
        with pytest.raises(ChannelFull, match=r"most=2, 'a' has 2 unread$"):
            channel.publish(3)
        assert kept() == [1, 2]
        assert Channel("c").publish("by one without a limit") == 3
        with transaction.atomic():
            with pytest.raises(ChannelFull):
                channel.publish(4)
            Channel("other").publish("goes on")
    assert channel_row().last == 3


def test_many_that_make_the_channel_at_once_make_one() -> None:
    numbers = at_once(8, lambda number: Channel("c").publish(number))
    assert sorted(numbers) == list(range(1, 9))
    assert ChannelRow.objects.count() == 1


def wait_until_told() -> None:
    signal.sigwait({signal.SIGUSR2})


def publish_slowly() -> None:
    """Publish, and commit when told to."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    with transaction.atomic():
        print("took", Channel("c").publish("slow"), flush=True)
        wait_until_told()


def publish_quickly() -> None:
    print("begins", flush=True)
    print("took", Channel("c").publish("quick"), flush=True)


def test_a_slow_commit_comes_first_for_everybody(spawn: Spawner) -> None:
    """With the numbers of an auto-increment column a reader would pass over the slow one."""
    filled(1)
    reader = Channel("c").subscribe("a")
    slow = spawn(publish_slowly)
    slow.line("took 2")
    quick = spawn(publish_quickly)
    quick.line("begins")
    assert all_of(reader) == []
    slow.send(signal.SIGUSR2)
    slow.succeed()
    quick.line("took 3")
    quick.succeed()
    assert all_of(reader) == ["slow", "quick"]
