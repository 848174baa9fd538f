"""A caller's open transaction, for the keeper: a row that it locks cannot be renewed meanwhile."""

import contextlib
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import ClaimInTransaction, GuardOutsideTransaction


class OpenTransaction:
    """One particular transaction of this process, as another thread sees it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        """Remember the transaction open on ``connection``; call it in the thread that opened it."""
        self._connection, self._outermost = connection, _identifying_block(connection.atomic_blocks)
        self._commits_at_its_end = connection.commit_on_exit

    @property
    def is_open(self) -> bool:
        """Whether this transaction is still open; a later one on the same connection does not count."""
        connection = self._connection
        if outermost := connection.atomic_blocks[:1]:
            return outermost[0] is self._outermost
        # Django removes the last block before the commit, and turns autocommit on after it.
        is_committing = connection.connection is not None and not connection.autocommit
        return is_committing and self._commits_at_its_end


def callers_blocks(connection: BaseDatabaseWrapper) -> list[Any]:
    """Return the open atomic blocks, without the one that Django's TestCase wraps around a test."""
    return [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]


@contextlib.contextmanager
def guard_transaction(using: str, ensure_held: Callable[[], object], called: str) -> Iterator[None]:
    """Begin a ``guard()``: the open ``atomic`` block rolls back if this one raises, even if the error is caught.

    Args:
        called: the name of the object with this ``guard()``, for the error.

    Raises:
        LeaseLost: raised by ``ensure_held``.
        GuardOutsideTransaction: no transaction is open.
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


def _identifying_block(blocks: list[Any]) -> Any:
    """Return the outermost ``atomic`` block as an object that identifies this transaction.

    A decorated function enters the same object with each call, so it is replaced by a copy: Django only counts blocks,
    and removes the last one at the end.
    """
    if not hasattr(blocks[0], "identifies_transaction"):
        blocks[0] = copy(blocks[0])
        blocks[0].identifies_transaction = True
    return blocks[0]


def refuse_open_transaction(connection: BaseDatabaseWrapper, *, is_allowed: bool = False) -> None:
    """Raise ClaimInTransaction if the caller has an open transaction, unless that ``is_allowed``."""
    if connection.autocommit and not connection.atomic_blocks:
        return
    blocks = callers_blocks(connection)
    commits_at_its_end = connection.in_atomic_block and connection.commit_on_exit
    if not _is_autocommit_on(connection) and not commits_at_its_end:
        raise ClaimInTransaction(
            f"autocommit is off on database {connection.alias!r}: the lease would not be committed by this call. Turn "
            "autocommit on"
        )
    if blocks and not is_allowed:
        raise ClaimInTransaction(
            f"a transaction is open on database {connection.alias!r}: a lease claimed inside it would be "
            "invisible to others until the commit and undone by a rollback. Acquire before "
            "transaction.atomic() (ATOMIC_REQUESTS opens one for every view), or, for a resource, pass "
            "allow_in_transaction=True if this is intended"
        )
    if _is_in_savepoint(connection, blocks):
        raise ClaimInTransaction(
            f"a savepoint is open on database {connection.alias!r} (an atomic block inside another one): if it "
            "rolls back alone, other processes could lease the row while this handle is still valid. Acquire "
            "outside of it, or open the inner block with savepoint=False"
        )


def refuse_callers_transaction(connection: BaseDatabaseWrapper, why: str) -> None:
    """Raise ClaimInTransaction, with the text ``why``, if the caller has an open transaction."""
    if callers_blocks(connection) or not (_is_autocommit_on(connection) or connection.atomic_blocks):
        raise ClaimInTransaction(why)


def _is_autocommit_on(connection: BaseDatabaseWrapper) -> bool:
    # Django does not know it before the connection is open.
    is_open = connection.connection is not None
    return bool(connection.autocommit if is_open else connection.settings_dict["AUTOCOMMIT"])


def _is_in_savepoint(connection: BaseDatabaseWrapper, blocks: list[Any]) -> bool:
    """Whether one of the caller's ``blocks`` can roll back alone."""
    in_test_case = len(blocks) < len(connection.atomic_blocks)  # the outermost block replaces a transaction
    inner = len(blocks) - in_test_case
    return inner > 0 and any(sid is not None for sid in connection.savepoint_ids[-inner:])
