"""Publishing several at once: one range of numbers, all or none."""

import asyncio
import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, strategies as st

from resourcepool.db.rows import LENGTH, batches
from resourcepool.exceptions import BadOption, ChannelFull
from resourcepool.locks import Channel
from resourcepool.locks.channels.channel import BATCH, Publication
from resourcepool.models import Stream
from resourcepool.taskqueue import NewTask, submit_many
from tests.locks.channels.reading import all_of, channel_row, durable, filled, kept


def test_they_have_one_range_of_numbers_and_come_in_their_order() -> None:
    channel = filled(1)
    reader = channel.subscribe(from_=2)
    assert channel.publish_many(n for n in range(BATCH + 2)) == range(2, BATCH + 4)
    assert asyncio.run(channel.apublish_many(["a", None])) == range(BATCH + 4, BATCH + 6)
    assert channel.publish("b") == BATCH + 6
    assert all_of(reader) == [*range(BATCH + 2), "a", None, "b"]


def test_none_are_none_and_make_no_channel() -> None:
    assert Channel("c").publish_many([]) == range(0)
    assert Channel("c").publish_many(["first"]) == range(1, 2)


@pytest.mark.parametrize(
    ("payloads", "said"),
    [
        ([1, {2}, 3], r"payloads\[1\]=\{2\} is not allowed: it must be a JSON value"),
        ([1, math.nan], r"payloads\[1\]=nan"),
        (["x", "y" * 65_536], r"payloads\[1\]='65538 bytes' .* at most 65536 bytes"),
        (["x" * 60_000] * 70, "payloads='4200140 bytes' .* at most 4194304 bytes"),
        ([1] * 1_001, "payloads='1001 messages' is not allowed: it must be at most 1000 messages at once"),
        (itertools.count(), "payloads='more than 1000 messages'"),
        ("text", "payloads='text' is not allowed: it must be a list of payloads"),
        (b"text", "a list of payloads"),
        ({"a": 1}, "a list of payloads"),
        (7, "a list of payloads"),
        (None, "a list of payloads"),
    ],
)
def test_if_one_is_refused_it_is_named_and_none_is_published(payloads: Any, said: str) -> None:
    with pytest.raises(BadOption, match=said):
        Channel("c").publish_many(payloads)
    assert kept() == []


def test_so_many_as_still_fit_are_taken_and_more_are_refused_together() -> None:
    channel = Channel("c", most=3)
    with channel.subscribe("a") as reader:
        channel.publish_many([1, 2])
        with pytest.raises(ChannelFull, match="most=3, 'a' has 2 unread; cannot add 2"):
            channel.publish_many([3, 4])
        assert channel.publish_many([3]) == range(3, 4)
        assert all_of(reader) == [1, 2, 3]
    with pytest.raises(BadOption, match=r"payloads='4 messages' .* at most 3 messages at once"):
        channel.publish_many([1, 2, 3, 4])
    assert (channel_row().last, durable().cursor) == (3, 3)


def test_a_lost_commit_is_not_published_twice() -> None:
    publication = Publication("default", Channel("c")._channel_row, ["1", "2", "3"], None)
    assert publication.send() == 3
    Channel("c").publish("another one's")
    assert publication.send() == 3
    assert kept() == [1, 2, 3, 4]
    publication._number = 4
    assert publication.send() == 7


def test_of_many_each_costs_no_statement_of_its_own() -> None:
    channel = filled(1)
    with CaptureQueriesContext(connection) as one:
        channel.publish(1)
    with CaptureQueriesContext(connection) as many:
        channel.publish_many(range(BATCH))
    assert len(many) == len(one)


@pytest.mark.only("mysql")
def test_many_long_messages_fit_a_server_that_takes_only_1_mb_in_a_statement() -> None:
    with takes_1_mb():
        assert Channel("c").publish_many(["ü" * 20_000] * 60) == range(1, 61)
    assert kept() == list(range(1, 61))


@pytest.mark.only("mysql")
def test_so_do_many_long_tasks() -> None:
    Stream.objects.create(name="s")
    with takes_1_mb():
        assert submit_many("s", [NewTask("t", {"a": '"' * 25_000}) for _ in range(40)]) == 40


@contextlib.contextmanager
def takes_1_mb() -> Iterator[None]:
    """Have a new session on a server with the smallest usual ``max_allowed_packet``."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.max_allowed_packet")
        (before,) = cursor.fetchone()
        cursor.execute("SET GLOBAL max_allowed_packet = 1048576")
    connection.close()
    try:
        yield
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("SET GLOBAL max_allowed_packet = %s", [before])
        connection.close()


@given(st.lists(st.integers(0, 300_000)), st.integers(1, 5))
def test_batches_keep_the_order_and_are_small_in_both_ways(lengths: list[int], most: int) -> None:
    found = list(batches(lengths, int, most))
    assert [length for batch in found for length in batch] == lengths
    assert all(0 < len(batch) <= most for batch in found)
    assert all(sum(batch) <= LENGTH or len(batch) == 1 for batch in found)
