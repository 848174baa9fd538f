"""Refuses claims in a transaction of the caller, which would hide the claim from others, or undo it."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import ClaimInTransaction
from resourcepool.waiting.request import Request


def refuse_open_transaction(connection: BaseDatabaseWrapper, request: Request) -> None:
    """Raise ClaimInTransaction if the caller has a transaction open and did not allow that."""
    if connection.autocommit and not connection.atomic_blocks:
        return
    # The transaction that Django's TestCase wraps around a test is not the caller's.
    blocks = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    is_open = connection.connection is not None
    autocommit = connection.autocommit if is_open else connection.settings_dict["AUTOCOMMIT"]
    commits_at_its_end = connection.in_atomic_block and connection.commit_on_exit
    if not autocommit and not commits_at_its_end:
        raise ClaimInTransaction(
            f"autocommit is off on database {connection.alias!r}: nobody would notice when the lease is committed, or "
            "rolled back, and no atomic block commits it. Turn it on"
        )
    if blocks and not request.allow_in_transaction:
        raise ClaimInTransaction(
            f"a transaction is open on database {connection.alias!r}: a lease claimed inside it would be "
            "invisible to others until the commit and undone by a rollback. Acquire before "
            "transaction.atomic() (ATOMIC_REQUESTS opens one for every view), or pass "
            "allow_in_transaction=True if you mean it"
        )
    if _is_in_savepoint(connection, blocks):
        raise ClaimInTransaction(
            f"a savepoint is open on database {connection.alias!r} (an atomic block inside another one): should it "
            "roll back alone, others would be granted what is claimed in it while its handle still counts. Acquire "
            "outside of it, or open the inner block with savepoint=False"
        )


def _is_in_savepoint(connection: BaseDatabaseWrapper, blocks: list[Any]) -> bool:
    """Whether one of the caller's ``blocks`` can roll back alone."""
    in_test_case = len(blocks) < len(connection.atomic_blocks)  # where the outermost stands for a transaction
    inner = len(blocks) - in_test_case
    return inner > 0 and any(sid is not None for sid in connection.savepoint_ids[-inner:])
