"""A queue that is removed and added again."""

from collections.abc import Callable

import pytest
from django.db import connection

from resourcepool.db import dialect
from resourcepool.queues import administration
from tests.queues.members import (
    NAME,
    create_queue_group,
    expire,
    foreign_server,
    queue,
    read_queue_group,
    replan,
)

pytestmark = pytest.mark.usefixtures("transactional_db")


def remove_by_operator() -> None:
    administration.remove_queues(NAME, ["1"])
    administration.add_queues(NAME, ["1"])


def delete_its_queue_group() -> None:
    read_queue_group().queues.all().delete()
    read_queue_group().delete()
    create_queue_group(1)


def delete_its_row() -> None:
    queue("1").delete()
    administration.add_queues(NAME, ["1"])


@pytest.mark.parametrize("add_again", [remove_by_operator, delete_its_queue_group, delete_its_row])
def test_goes_on_with_higher_fences_than_it_ever_had(add_again: Callable[[], None]) -> None:
    """A system that compares fences would otherwise refuse the new server and accept a late old one."""
    create_queue_group(1)
    for name in "ABC":
        expire(foreign_server(name))
        replan(if_due=True)
    highest = queue("1").fence
    assert highest > 0
    add_again()
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_where_the_clock_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's clock has milliseconds, and any clock may be set back slightly."""
    monkeypatch.setattr(type(dialect.of(connection)), "micros_now", "1700000000000000")
    create_queue_group(1)
    for name in "ABC":
        expire(foreign_server(name))
        replan(if_due=True)
    highest = queue("1").fence
    administration.remove_queues(NAME, ["1"])
    administration.add_queues(NAME, ["1"])
    assert queue("1").fence > highest


def test_goes_on_with_higher_fences_when_a_copy_that_was_read_before_is_saved_after_it() -> None:
    """Django finds no row to update, and inserts the copy."""
    create_queue_group(2)
    copy = queue("1")
    foreign_server("A")
    highest = queue("1").fence
    assert highest > copy.fence
    queue("1").delete()
    copy.parameter = "late"
    copy.save()
    assert queue("1").fence > highest
