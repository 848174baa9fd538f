"""The term of a leader."""

from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Min, Value
from django.db.models.functions import Least

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.elections.models import selector
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.terms import MAX_LENGTH
from resourcepool.signals import EventKind
from resourcepool.threads.async_threads import for_asyncio
from resourcepool.waiting.lease import AwaitedLease
from resourcepool.waiting.models import Ticket

LISTED = 5  # standbys in an error


class Leader(NamedTuple):
    """Who leads, and for how many seconds; ``since`` is None until the beginning of the term is stored."""

    holder: str
    term: int
    since: float | None


class Term(AwaitedLease):
    """A lease whose ``fence`` is the number of the term; see ``Lease``. As a context manager it resigns at the end."""

    is_noted = False  # whether resigning is stored in the row: after that there is no lock-delay

    @property
    def is_leader(self) -> bool:
        """Whether this process may still rely on leading. No I/O, so ask before each step of the work."""
        return self.is_held

    def resign(self, to: str | None = None) -> None:
        """Stop leading: the first in line leads at once.

        Args:
            to: the holder of a standby, which is moved to the front of the line; None: the line as it is.

        Raises:
            LeaseLost: it was lost before.
            BadOption: there is no such standby; the term goes on.
        """
        if to is None:
            self.release()
            return
        self.ensure_held()
        self._move_to_front(options.text("to", to, most=MAX_LENGTH))
        self._give_up(EventKind.HANDED_OVER, f"handed over to {to}", self._send_release, f"to {to}")

    aresign = for_asyncio(resign)

    def __reduce__(self) -> Any:
        raise TypeError(
            f"term {self.fence} of {self.pk!r} belongs to this process: send the name and the number"
        )

    def report_leak(self, why: str) -> None:
        """Report nothing: a program that leads as long as it lives need not keep the handle."""

    def _move_to_front(self, holder: str) -> None:
        connection = connections[self.using]
        line = standbys(self.using, self.model, self.pk)
        first = retrying(connection, lambda: line.aggregate(Min("priority"))["priority__min"] or 0)
        front = Least(F("priority"), Value(first - 1))
        if not retrying(connection, lambda: line.filter(holder=holder).update(priority=front)):
            names = line.order_by("priority", "pk").values_list("holder", flat=True)[:LISTED]
            raise BadOption("to", holder, "a standby: " + (", ".join(names) or "nobody stands by"))

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if self.is_noted:
            mine = verbs.rows_of(connection, self.model).filter(pk=self.pk, fence=self.fence)
            retrying(connection, lambda: mine.update(resigned_term=self.fence))
        return super()._send_release(connection)


def standbys(using: str, model: Any, name: str) -> Any:
    """Return the tickets of the standbys of the election ``name``."""
    return Ticket.objects.using(using).for_rows_of(model).waiting().filter(selector=selector(name))
