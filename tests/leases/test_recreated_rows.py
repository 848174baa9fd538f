"""After a row is deleted and recreated under the same key, old handles are not accepted."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.db.dialect import read_clock
from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.models import LEASE_COLUMNS
from resourcepool.leases.renewal import renew_together
from tests.app.rows import busy_for, claim, columns, expire, granted, wanted
from tests.eventually import eventually

WAYS: dict[str, Callable[[Any], Any]] = {
    "save": lambda row: row.save(force_insert=True),
    "bulk_create": lambda row: type(row)._base_manager.bulk_create([row]),
    "get_or_create": lambda row: type(row)._base_manager.get_or_create(pk=row.pk, defaults=_given(row)),
}


def _given(row: Any) -> dict[str, Any]:
    return {
        one.attname: getattr(row, one.attname)
        for one in row._meta.concrete_fields
        if one.name not in LEASE_COLUMNS
    }


def again(row: Any, way: str = "save") -> Any:
    """Delete the row past everything that looks after it, and make it again under its key, at a later moment."""
    copy = type(row)(**_given(row))
    delete(row)
    WAYS[way](copy)
    return copy


def delete(row: Any) -> None:
    """Delete it past everything that looks after it; whatever comes, comes at a later moment."""
    at = read_clock(connection)
    type(row)._base_manager.filter(pk=row.pk)._raw_delete("default")
    eventually(lambda: read_clock(connection) > at)


@pytest.mark.parametrize("way", WAYS)
def test_goes_on_with_higher_fences_than_it_ever_had(row: Any, way: str) -> None:
    highest = -1
    for _ in range(3):
        row = again(row, way)
        assert columns(row)["fence"] > highest
        granted(row)
        expire(row)
        highest = granted(row).fence


def test_says_its_fence_as_soon_as_it_is_made(row: Any) -> None:
    made = again(row)
    if connection.features.can_return_columns_from_insert:
        assert made.fence == columns(made)["fence"]
    made.save()
    assert granted(made).fence == columns(made)["fence"] > 1_000_000


def test_a_fence_that_is_given_is_kept(row: Any) -> None:
    copy = type(row)(**_given(row), fence=7)
    delete(row)
    copy.save(force_insert=True)
    assert granted(copy).fence == 8


def test_one_that_was_read_before_it_was_deleted_begins_anew_when_it_is_saved(row: Any) -> None:
    """A form, or a task, that is saved late: Django finds nothing to update, and inserts."""
    read = type(row)._base_manager.get(pk=row.pk)
    highest = granted(row).fence
    delete(row)
    read.save()
    assert granted(read).fence > highest + 1


def as_new(row: Any) -> Any:
    row._state.adding = True  # as Django's documentation has it
    return row


COPIES: dict[str, Callable[[Any], Any]] = {
    "saved": lambda row: row.save(),
    "saved as new": lambda row: as_new(row).save(),
    "made with others": lambda row: type(row).objects.bulk_create([row]),
    "made with others as new": lambda row: type(row).objects.bulk_create([as_new(row)]),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_row_that_somebody_has_is_a_row_that_nobody_has(row: Any, way: str) -> None:
    lease = granted(row)
    read = type(row)._base_manager.get(pk=row.pk)
    delete(row)  # so that it can have the same name
    COPIES[way](read)
    after = columns(read)
    assert (after["holder"], after["fence"] > lease.fence + 1) == ("", True)
    assert busy_for(read) <= 0


@pytest.mark.parametrize("way", ["saved", "saved as new", "made with others"])
def test_one_that_was_not_read_again_since_it_was_made_begins_anew_too(row: Any, way: str) -> None:
    made = again(row)
    highest = granted(made).fence
    delete(row)
    COPIES[way](made)
    assert granted(made).fence > highest + 1


class TestALeaseOfItsFirstLife:
    @pytest.fixture
    def old(self, row: Any) -> Lease:
        """Of a row that somebody has by now who came after it was made again."""
        first = again(row)
        lease = Lease(type(row), "default", granted(first), wanted())
        assert claim(again(first), "second") is not None
        return lease

    @pytest.mark.parametrize("use", [Lease.renew, Lease.release, lambda lease: lease.hand_over("heir")])
    def test_changes_nothing_and_is_told(self, old: Lease, use: Callable[[Lease], object]) -> None:
        before = list(verbs.rows_of(connection, old.model).values())
        with pytest.raises(LeaseLost):
            use(old)
        assert list(verbs.rows_of(connection, old.model).values()) == before

    def test_lets_no_guarded_work_commit(self, old: Lease) -> None:
        with pytest.raises(LeaseLost), transaction.atomic(), old.guard():
            pytest.fail("it is lost")

    def test_is_found_lost_by_the_keeper(self, old: Lease) -> None:
        renew_together("default", [old])
        assert old.lost.is_set()

    def test_is_adopted_by_nobody(self, old: Lease) -> None:
        assert verbs.adopt(connection, old.model, old.pk, old.fence, wanted()) is None
