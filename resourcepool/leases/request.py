"""A caller's request for rows."""

import dataclasses
import math
from dataclasses import dataclass

from resourcepool import options
from resourcepool.leases.terms import Terms


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
