"""What has been read: the cursor of a durable subscription, and ``done``."""

import pytest
from django.db import transaction

from resourcepool.exceptions import LeaseReleased
from resourcepool.locks import Channel
from tests.committed import Statement
from tests.locks.channels.reading import all_of, durable, filled


def test_done_moves_the_cursor_at_once_and_never_back() -> None:
    with filled(3).subscribe("a", from_="start") as reader:
        first, second = next(reader), next(reader)
        second.done()
        assert durable().cursor == reader.cursor == 2
        first.done()
        assert durable().cursor == reader.cursor == 2
    with Channel("c").subscribe("a") as reader:
        assert all_of(reader) == [3]


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
