"""A caller's transaction, for the keeper: a row that it has locked cannot be renewed meanwhile."""

import contextlib
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import GuardOutsideTransaction

A_MINUTE = 60.0  # seconds
SHORTEST_SILENCE = 5.0  # seconds: a process may pause for this long without being taken for dead


class OpenTransaction:
    """One particular transaction of this process, as another thread sees it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        """Take the transaction that is open on ``connection``; for the thread that opened it."""
        self._connection, self._outermost = connection, _marked(connection.atomic_blocks)
        self._commits_at_its_end = connection.commit_on_exit

    @property
    def is_open(self) -> bool:
        """Whether it still runs; a later one on the same connection does not count."""
        connection = self._connection
        if outermost := connection.atomic_blocks[:1]:
            return outermost[0] is self._outermost
        # Django removes the last block before it commits, and turns autocommit on after that.
        is_committing = connection.connection is not None and not connection.autocommit
        return is_committing and self._commits_at_its_end


def callers_blocks(connection: BaseDatabaseWrapper) -> list[Any]:
    """Return the open atomic blocks, but for the one that Django's TestCase wraps around a test."""
    return [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]


def set_idle_timeout(connection: BaseDatabaseWrapper, ttl: float = A_MINUTE) -> None:
    """Make the server end the open transaction, if any, after about ``ttl`` seconds without a statement.

    A host that vanishes in a transaction would otherwise keep its rows locked until the server notices, which takes
    hours. Not set in the transaction that Django's TestCase wraps around a test.
    """
    blocks = connection.atomic_blocks
    if blocks and not getattr(blocks[0], "_from_testcase", False):
        with statement_timeout():
            retrying(connection, partial(dialect.limit_idle, connection, max(ttl, SHORTEST_SILENCE)))


@contextlib.contextmanager
def guard_transaction(using: str, ensure_held: Callable[[], object], called: str) -> Iterator[None]:
    """Begin a ``guard()``: the open ``atomic`` block rolls back if this one raises, even if the error is caught.

    Raises:
        LeaseLost: ``ensure_held`` raises it.
        GuardOutsideTransaction: no transaction is open; ``called`` is what has this ``guard()``.
    """
    try:
        ensure_held()
        if connections[using].in_atomic_block:
            yield
            return
    except BaseException:
        if connections[using].in_atomic_block:
            transaction.set_rollback(True, using=using)
        raise
    raise GuardOutsideTransaction(
        f"guard() protects an open transaction on database {using!r}; there is none. "
        f"Write: with transaction.atomic(), {called}.guard(): ..."
    )


def _marked(blocks: list[Any]) -> Any:
    """Return the outermost ``atomic`` block, as an object that stands for this transaction alone.

    A decorated function enters the same object with each call. Django only counts blocks, and removes the last one at
    the end, on commit and on rollback; so a copy works as well.
    """
    if not hasattr(blocks[0], "stands_for_one_transaction"):
        blocks[0] = copy(blocks[0])
        blocks[0].stands_for_one_transaction = True
    return blocks[0]
