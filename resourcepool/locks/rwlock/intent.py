"""Who of several readers may become the writer: one at a time, for each would wait for the others."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.answers import answer_timeout
from resourcepool.database.retry import retrying
from resourcepool.exceptions import UpgradeConflict
from resourcepool.leases import verbs
from resourcepool.leases.terms import Terms
from resourcepool.locks.hold import LockLease
from resourcepool.locks.models import RWLockPermit
from resourcepool.locks.ways import Way


@contextlib.asynccontextmanager
async def intent(way: Way, name: str, using: str, terms: Terms) -> AsyncIterator[None]:
    """Be the one reader of the lock ``name`` who waits to write. Raises UpgradeConflict if another one is.

    It is a lease of a row: that of one who died expires.
    """
    lease = await way.call(_declare, name, using, terms, undo=LockLease.abandon)
    try:
        yield
    except BaseException:
        await way.call(lease.abandon)
        raise
    await way.call(lease.give_back_or_expire)


def _declare(name: str, using: str, terms: Terms) -> LockLease:
    connection, key = connections[using], RWLockPermit.intent_of(name)
    with answer_timeout():
        grant = verbs.claim(connection, RWLockPermit, key, terms)
        if grant is None and retrying(connection, partial(_add, connection, key)):
            grant = verbs.claim(connection, RWLockPermit, key, terms)
    if grant is None:
        raise UpgradeConflict(
            f"another reader of {name!r} waits already to write, and each would wait for the other to release: "
            "release, and take write()"
        )
    lease = LockLease(RWLockPermit, using, grant, terms)
    lease.is_delivered = True
    return lease


def _add(connection: BaseDatabaseWrapper, key: str) -> bool:
    """Add the row if there is none; tells whether this was so."""
    rows = verbs.rows_of(connection, RWLockPermit)
    if rows.filter(pk=key).exists():
        return False
    with contextlib.suppress(IntegrityError), transaction.atomic(using=connection.alias):
        rows.bulk_create([RWLockPermit(key=key, name="")])
    return True
