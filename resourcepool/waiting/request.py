"""A caller's request, and the source that can fill it."""

import dataclasses
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.database.retry import A_LITTLE, LONGEST, answer_timeout
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant, Terms


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request.

    Attributes:
        count: how many rows, all or none.
        timeout: how many seconds to wait for them at most.
        priority: the order of service: the lowest first, then by arrival.
        strategy: how a free row is chosen.
        selector: canonical JSON of the wanted fields; equal text means an equal selection.
        terms: the options of the leases.
    """

    terms: Terms
    count: int = 1
    timeout: float = 0.0
    priority: int = 0
    strategy: str = ""
    selector: str = "{}"
    allow_in_transaction: bool = False

    def answer_timeout(self) -> AbstractContextManager[None]:
        """Limit the statements in this block, so that none keeps the caller much beyond its ``timeout``."""
        return answer_timeout(min(LONGEST, self.timeout + A_LITTLE))

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

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time; ``trouble``: the error that prevented it.

        ``holder``: the name under which it waited in line, "" if it did not.
        """
