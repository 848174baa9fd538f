"""What a caller asks for, and of whom."""

import dataclasses
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases.answering import A_LITTLE, LONGEST, answer_timeout
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms
from resourcepool.leases.verbs import Grant


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request.

    Attributes:
        count: how many rows, all or none.
        timeout: how many seconds to wait for them at most.
        priority: who is served first: the lowest, then who came first.
        strategy: how a free row is chosen.
        selector: canonical JSON of the wanted fields; equal text means equal wishes.
        terms: of the leases.
    """

    terms: Terms
    count: int = 1
    timeout: float = 0.0
    priority: int = 0
    strategy: str = ""
    selector: str = "{}"
    allow_in_transaction: bool = False

    def answer_timeout(self) -> AbstractContextManager[None]:
        """Have no statement that is sent for it in this block keep its caller much beyond its ``timeout``."""
        return answer_timeout(min(LONGEST, self.timeout + A_LITTLE))

    def again(self, timeout: object = None) -> "Request":
        """Return the same request for one more row; with a ``timeout`` of its own, if given."""
        wait = self.timeout if timeout is None else options.seconds("timeout", timeout)
        return dataclasses.replace(self, count=1, timeout=wait)


class Source(Protocol):
    """Rows of one model that can be waited for, such as a pool."""

    @property
    def model(self) -> Model:
        """The model whose rows are handed out."""

    @property
    def using(self) -> str:
        """The database on which that is decided."""

    def claim_free(self, connection: BaseDatabaseWrapper, request: Request) -> list[Grant] | None:
        """Claim what is free, if it is enough."""

    def handle(self, using: str, grant: Grant, request: Request) -> Lease:
        """Return the handle of what was granted."""

    def refuse_impossible(self, connection: BaseDatabaseWrapper, request: Request) -> None:
        """Raise BadOption if the request can never be filled."""

    def timed_out(self, request: Request, holder: str, trouble: Exception | None) -> AcquireTimeout:
        """Return the error for a request that was not filled in time; ``trouble``: what kept it from being.

        ``holder``: the name under which it stood in line, "" if it did not.
        """
