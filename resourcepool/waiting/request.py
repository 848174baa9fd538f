"""A caller's request, the source of rows that fills it, and the check for open transactions."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.open_transaction import callers_blocks
from resourcepool.exceptions import AcquireTimeout, ClaimInTransaction
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant, Terms


@dataclass(slots=True)  # not frozen: see ``Terms``
class Request:
    """A validated request. Immutable by convention: callers share it.

    Attributes:
        count: number of rows, all or none.
        timeout: maximum wait in seconds.
        priority: lowest first, then by arrival.
        strategy: name of the rule that chooses a free row.
        selector: canonical JSON of the requested fields; equal text means an equal selection.
        terms: the options of the leases.
        fifo_once: enqueue without claiming free rows, with a single ticket: if it expires, the request ends without
            rows. The database decides whether the request was served or timed out first.
        ends_session: a long wait closes the thread's session, even if an earlier request opened it.
    """

    terms: Terms
    count: int = 1
    timeout: float = 0.0
    priority: int = 0
    strategy: str = ""
    selector: str = "{}"
    allow_in_transaction: bool = False
    fifo_once: bool = False
    ends_session: bool = False

    @property
    def within(self) -> str:
        """The timeout, for the end of a sentence; "" if there is none."""
        return "" if math.isinf(self.timeout) else f" within {round(self.timeout, 3):g} s"

    def again(self, timeout: object = None) -> "Request":
        """Return the same request for one row, with a new ``timeout`` if given."""
        wait = self.timeout if timeout is None else options.seconds("timeout", timeout)
        return dataclasses.replace(self, count=1, timeout=wait)


class Source(Protocol):
    """A source of rows of one model with waiters, such as a pool."""

    @property
    def model(self) -> Model:
        """The model whose rows are leased."""

    @property
    def using(self) -> str:
        """The database of the rows."""

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows, if there are enough."""

    def handle(self, using: str, grant: Grant, request: Request) -> Lease:
        """Return the handle of a grant."""

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption if the request can never be filled."""

    def timed_out(self, request: Request, holder: str, db_error: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time.

        Args:
            holder: the name under which it waited in line; "" if it did not.
            db_error: the error of the database that prevented it, if any.
        """


def refuse_open_transaction(connection: BaseDatabaseWrapper, request: Request) -> None:
    """Raise ClaimInTransaction if the caller has an open transaction and did not allow it."""
    if connection.autocommit and not connection.atomic_blocks:
        return
    blocks = callers_blocks(connection)
    is_open = connection.connection is not None
    autocommit = connection.autocommit if is_open else connection.settings_dict["AUTOCOMMIT"]
    commits_at_its_end = connection.in_atomic_block and connection.commit_on_exit
    if not autocommit and not commits_at_its_end:
        raise ClaimInTransaction(
            f"autocommit is off on database {connection.alias!r}: the lease would not be committed by this call. Turn "
            "autocommit on"
        )
    if blocks and not request.allow_in_transaction:
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


def _is_in_savepoint(connection: BaseDatabaseWrapper, blocks: list[Any]) -> bool:
    """Whether one of the caller's ``blocks`` can roll back alone."""
    in_test_case = len(blocks) < len(connection.atomic_blocks)  # the outermost block replaces a transaction
    inner = len(blocks) - in_test_case
    return inner > 0 and any(sid is not None for sid in connection.savepoint_ids[-inner:])
