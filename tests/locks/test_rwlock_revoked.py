"""A reader or writer whose permit an operator takes away while it changes sides is told so, whoever has it then."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.exceptions import LeaseLost
from resourcepool.locks import Hold, RWLock, bulk_release
from resourcepool.locks.bulk_release import revoke_rows
from resourcepool.models import RWLockPermit, Ticket
from tests.eventually import InBackground, eventually
from tests.locks.readwrite import InBackgroundReader, can_read, can_write, lock, permits


def revoke(held: Hold) -> None:
    """Take away the one permit that ``held`` reads or goes on with, as ``release_all(its holder)`` does elsewhere."""
    lease = max(held.leases, key=lambda lease: lease.fence)
    row = (lease.pk, lease.fence, lease.holder)
    assert revoke_rows(connection, RWLockPermit, [row], "broken", "") == [lease.pk]


@pytest.mark.parametrize("readers", [2, 3])
def test_a_reader_that_waits_to_write_does_not_write_with_a_permit_that_it_has_lost(readers: int) -> None:
    """The freed permit goes to the first in line: the ticket of the very reader that lost it."""
    catalogue = RWLock("catalogue", readers=readers)
    other = InBackgroundReader()
    side = catalogue.read()
    held: Any = side.acquire()
    assert held is not None

    def revoke_all() -> None:
        eventually(Ticket.objects.waiting().exists)
        eventually(lambda: not can_read())  # it has collected all permits but those of the two readers
        revoke(held)

    takes = InBackground(revoke_all)
    with pytest.raises(LeaseLost):
        catalogue.upgrade(timeout=30)
    takes.result()
    assert (held.is_held, held.is_writing) == (False, False)
    assert held.lost.is_set()
    with pytest.raises(LeaseLost):
        side.release()
    assert eventually(can_read)
    assert not can_write()
    other.release()
    assert eventually(can_write)


def test_a_reader_whose_permits_are_all_taken_away_does_not_write_while_it_waits() -> None:
    with lock().read():
        pass
    others = permits().exclude(pk=RWLockPermit.key_of("catalogue", 0))
    others.update(in_service=False)
    side = lock().read()
    # With the first permit, which is revoked first; after the others' it may write until then.
    held: Any = side.acquire()
    others.update(in_service=True)
    other = InBackgroundReader()

    def revoke_all() -> None:
        eventually(Ticket.objects.waiting().exists)
        eventually(lambda: not can_read())
        bulk_release.revoke(permits(), "broken")

    takes = InBackground(revoke_all)
    with pytest.raises(LeaseLost):
        lock().upgrade(timeout=30)
    takes.result()
    assert not held.is_held
    with pytest.raises(LeaseLost):
        side.release()
    with pytest.raises(LeaseLost):
        other.release()
    assert eventually(can_write)


@pytest.mark.parametrize("change", ["upgrade", "downgrade"])
def test_who_lost_the_permit_just_before_neither_writes_nor_reads_on(change: str) -> None:
    side = lock().read() if change == "upgrade" else lock().write()
    held: Any = side.acquire()
    revoke(held)
    with pytest.raises(LeaseLost):
        getattr(lock(), change)()
    assert (held.is_held, held.is_writing) == (False, False)
    with pytest.raises(LeaseLost):
        side.release()
    assert can_write()


def test_a_writer_that_reads_too_does_not_read_on_with_a_permit_that_it_lost() -> None:
    """The end of its last write lets other readers in, as ``downgrade`` does."""
    reading, writing = lock().read(), lock().write()
    held: Any = writing.acquire()
    assert reading.acquire() is held
    revoke(held)
    with pytest.raises(LeaseLost):
        writing.release()
    with pytest.raises(LeaseLost):
        reading.release()
    assert can_write()
