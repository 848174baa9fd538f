"""What has been read: the cursor of a durable subscription, and ``done``."""

import pytest
from django.db import transaction

from resourcepool.exceptions import (
    LeaseReleased,
)
from resourcepool.locks import Channel
from tests.committed import Statement
from tests.locks.channels.reading import all_of, durable, filled


def test_a_durable_subscription_goes_on_where_it_was_and_not_where_one_says() -> None:
    channel = filled(3)
    with channel.subscribe("a", from_="start") as reader:
        assert [next(reader).payload, next(reader).payload] == [1, 2]  # of which the first is done
    with channel.subscribe("a", from_="now") as reader:
        assert all_of(reader) == [2, 3]
    with channel.subscribe("a", from_="start") as reader:
        assert all_of(reader) == []
    assert durable().cursor == 3


def test_what_is_in_hand_when_the_block_fails_comes_again() -> None:
    channel = filled(2)
    with pytest.raises(ZeroDivisionError), channel.subscribe("a", from_="start") as reader:
        for _message in reader:
            raise ZeroDivisionError
    with channel.subscribe("a") as reader:
        assert all_of(reader) == [1, 2]


def test_done_moves_the_cursor_at_once_and_never_back() -> None:
    with filled(3).subscribe("a", from_="start") as reader:
        first, second = next(reader), next(reader)
        second.done()
        assert durable().cursor == reader.cursor == 2
        first.done()
        assert durable().cursor == reader.cursor == 2
    with Channel("c").subscribe("a") as reader:
        assert all_of(reader) == [3]


def test_done_is_committed_with_the_work_or_not_at_all() -> None:
    reader = filled(2).subscribe("a", from_="start")
    message = next(reader)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        message.done()
        raise ZeroDivisionError
    assert durable().cursor == reader.cursor == 0
    with transaction.atomic():
        message.done()
    assert durable().cursor == 1
    reader.close()
    with Channel("c").subscribe("a") as reader:
        assert all_of(reader) == [2]


def test_an_error_after_the_transaction_takes_nothing_back() -> None:
    with pytest.raises(ZeroDivisionError), filled(3).subscribe("a", from_="start") as reader:
        for message in reader:
            with transaction.atomic():
                message.done()
            if message.number == 2:  # such as a commit that got no answer
                raise ZeroDivisionError
    assert durable().cursor == 2


def test_a_transaction_that_is_tried_again_after_a_lost_answer_is_told_that_it_is_done() -> None:
    with filled(2).subscribe("a", from_="start") as reader:
        message = next(reader)
        with transaction.atomic():
            message.done()
        with pytest.raises(LeaseReleased, match=r"message 1 of .* is done already"), transaction.atomic():
            message.done()
        assert durable().cursor == 1
        assert next(reader).number == 2


def test_the_cursor_is_stored_before_it_waits_and_not_with_each_message(statements: list[Statement]) -> None:
    reader = filled(50).subscribe("a", from_="start")
    del statements[:]
    for _ in range(50):
        next(reader)
    assert durable().cursor == 0
    assert reader.get(timeout=0) is None
    assert durable().cursor == 50
    stored = [one for one in statements if "UPDATE" in one.sql and "cursor" in one.sql]
    assert len(stored) == 1


def test_without_autocommit_a_rollback_takes_done_back() -> None:
    with filled(2).subscribe("a", from_="start") as reader:
        message = next(reader)
        transaction.set_autocommit(False)
        try:
            message.done()
            transaction.rollback()
            message.done()
            transaction.commit()
        finally:
            transaction.set_autocommit(True)
        assert durable().cursor == 1
