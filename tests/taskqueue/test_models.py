"""Saving a stream changes its settings, but not the columns that its leader writes."""

import pytest

from resourcepool.elections import Election
from resourcepool.models import Stream
from tests.app.rows import change, columns
from tests.taskqueue.consumers import stream

OF_THE_LEADER = ("address", "elected_at", "elected_term", "resigned_term")


def test_an_instance_that_is_older_than_the_leader_leaves_its_columns_alone() -> None:
    old = stream()
    with Election("oracle", Stream, lock_delay=0.001).campaign() as term:
        change(old, address=7, resigned_term=5)
        before = columns(old)
        old.retry_delay = 99
        old.save()
        after = columns(old)
        term.ensure_held()
    assert after["retry_delay"] == 99
    assert [after[name] for name in OF_THE_LEADER] == [before[name] for name in OF_THE_LEADER]
    assert (after["fence"], after["busy_before"]) == (before["fence"], before["busy_before"])


@pytest.mark.parametrize("name", ["address", "resigned_term"])
def test_a_column_of_the_leader_is_saved_when_it_is_named(name: str) -> None:
    row = stream()
    setattr(row, name, 7)
    row.save(update_fields=[name])
    assert columns(row)[name] == 7
