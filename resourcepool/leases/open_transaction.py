"""A caller's transaction, as the keeper needs to know it: a row it has locked cannot be renewed meanwhile."""

import contextlib
from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.leases.answering import answer_timeout
from resourcepool.leases.retry import retrying

A_MINUTE = 60.0  # seconds
SHORTEST_SILENCE = 5.0  # seconds: a pause of a process is not its end


class OpenTransaction:
    """One particular transaction of this process, as another thread sees it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection, self._outermost = connection, _marked(connection.atomic_blocks)
        self._commits_at_its_end = connection.commit_on_exit

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> "OpenTransaction | None":
        """Return the transaction that is open on ``connection``, if any; for the thread that opened it."""
        return cls(connection) if connection.atomic_blocks else None

    @property
    def is_open(self) -> bool:
        """Whether it still runs; a later one on the same connection is another one."""
        connection = self._connection
        if outermost := connection.atomic_blocks[:1]:
            return outermost[0] is self._outermost
        # Django takes the last one off before it commits, and turns autocommit on after that.
        is_committing = connection.connection is not None and not connection.autocommit
        return is_committing and self._commits_at_its_end


def limit_silence(connection: BaseDatabaseWrapper, ttl: float = A_MINUTE) -> None:
    """Have the transaction that is open, if any, end when this process is not heard of for about ``ttl`` seconds.

    Whoever vanishes with its host in a transaction that has locked a row would keep it until the server misses it,
    which takes hours. Not in the transaction that Django's TestCase wraps around a test.
    """
    blocks = connection.atomic_blocks
    if blocks and not getattr(blocks[0], "_from_testcase", False):
        with answer_timeout():
            retrying(connection, partial(dialect.limit_idle, connection, max(ttl, SHORTEST_SILENCE)))


@contextlib.contextmanager
def rolled_back_on_error(using: str) -> Iterator[None]:
    """Have the ``atomic`` block that is open on ``using`` roll back if this one raises, whoever catches that."""
    try:
        yield
    except BaseException:
        if connections[using].in_atomic_block:
            transaction.set_rollback(True, using=using)
        raise


def _marked(blocks: list[Any]) -> Any:
    """Return the outermost of the ``atomic`` blocks, as an object that stands for this transaction alone.

    A decorated function enters the same one with each call. Django only counts them, and takes the last one off at
    the end, whether it commits or rolls back; so a copy does as well.
    """
    if not hasattr(blocks[0], "stands_for_one_transaction"):
        blocks[0] = copy(blocks[0])
        blocks[0].stands_for_one_transaction = True
    return blocks[0]
