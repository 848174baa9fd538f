"""A caller's request, the source that can fill it, and whether it may be made now."""

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
    """A checked request. Not to be changed: callers share it.

    Attributes:
        count: how many rows, all or none.
        timeout: how many seconds to wait for them at most.
        priority: the order of service: the lowest first, then by arrival.
        strategy: how a free row is chosen.
        selector: canonical JSON of the wanted fields; equal text means an equal selection.
        terms: the options of the leases.
        stands_first: it is given only what comes while it stands in line, where it has one place: when that has lapsed,
            it is served with nothing. Whether it is served or too late is decided in the database.
        ends_session: a long wait ends the thread's session, also one that an earlier request began.
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
        """How long it may wait, for the end of a sentence; "" if that is as long as it takes."""
        return "" if math.isinf(self.timeout) else f" within {round(self.timeout, 3):g} s"

    def again(self, timeout: object = None) -> "Request":
        """Return the same request for one more row; with this ``timeout``, if given."""
        wait = self.timeout if timeout is None else options.seconds("timeout", timeout)
        return dataclasses.replace(self, count=1, timeout=wait)


class Source(Protocol):
    """Rows of one model that can be waited for, such as a pool."""

    @property
    def model(self) -> Model:
        """The model whose rows are handed out."""

    @property
    def using(self) -> str:
        """The database that decides about them."""

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim free rows, if there are enough."""

    def handle(self, using: str, grant: Grant, request: Request) -> Lease:
        """Return the handle of a grant."""

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption if the request can never be filled."""

    def timed_out(self, request: Request, holder: str, db_error: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time; ``db_error``: the error that prevented it.

        ``holder``: the name under which it waited in line, "" if it did not.
        """


def refuse_open_transaction(connection: BaseDatabaseWrapper, request: Request) -> None:
    """Raise ClaimInTransaction if the caller has a transaction open and did not allow that."""
    if connection.autocommit and not connection.atomic_blocks:
        return
    blocks = callers_blocks(connection)
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
            "transaction.atomic() (ATOMIC_REQUESTS opens one for every view), or, for a resource, pass "
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
