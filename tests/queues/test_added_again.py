"""A queue that is removed and added again."""

import pytest
from django.db import connection

from resourcepool import dialect
from resourcepool.queues import administration
from tests.queues.members import NAME, dies, kind, made, queue, replan, stranger

pytestmark = pytest.mark.usefixtures("transactional_db")


def test_goes_on_with_higher_fences_than_it_ever_had() -> None:
    """Whoever compares fences would otherwise refuse its new server and let a late old one in."""
    made(2)
    for name in "ABC":
        server = stranger(name)
        highest = queue("1").fence
        dies(server)
        replan(if_due=True)
    assert queue("1").fence > highest > 0
    highest = queue("1").fence
    administration.remove_queues(NAME, ["1"])
    administration.add_queues(NAME, ["1"])
    stranger("D")
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_when_its_queue_group_was_removed_and_made_again() -> None:
    made(1)
    for name in "ABC":
        dies(stranger(name))
        replan(if_due=True)
    highest = queue("1").fence
    assert highest > 0
    kind().queues.all().delete()
    kind().delete()
    made(1)
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_when_its_row_was_deleted_past_the_operator() -> None:
    made(2)
    stranger("A")
    highest = queue("1").fence
    queue("1").delete()
    administration.add_queues(NAME, ["1"])
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_where_the_clock_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's has milliseconds, and any may be set back by a little."""
    monkeypatch.setattr(type(dialect.of(connection)), "micros_now", "1700000000000000")
    made(1)
    for name in "ABC":
        dies(stranger(name))
        replan(if_due=True)
    highest = queue("1").fence
    administration.remove_queues(NAME, ["1"])
    administration.add_queues(NAME, ["1"])
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_when_a_copy_that_was_read_before_is_saved_after_it() -> None:
    """Django finds nothing to update, and inserts what the copy says."""
    made(2)
    copy = queue("1")
    stranger("A")
    highest = queue("1").fence
    assert highest > copy.fence
    queue("1").delete()
    copy.parameter = "late"
    copy.save()
    assert queue("1").fence > highest
