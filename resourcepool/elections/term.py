"""The term of a leader."""

from typing import Any, ClassVar, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Min, Value
from django.db.models.functions import Least

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.db.threads.sync_async import for_asyncio
from resourcepool.elections.models import selector
from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import MAX_LENGTH
from resourcepool.signals import EventKind
from resourcepool.waiting import release
from resourcepool.waiting.models import Ticket

MAX_NAMED_STANDBYS = 5  # in an error


class Leader(NamedTuple):
    """The leader; ``since``: for how many seconds it has led, None until the beginning of the term is stored."""

    holder: str
    term: int
    since: float | None


class Term(Lease):
    """A term: a lease whose ``fence`` is its number; see ``Lease``. As a context manager it resigns at the end."""

    _next_in_line: ClassVar[Any] = release
    _stores_resignation = False  # whether resigning is stored in the row, so that no lock-delay follows

    @property
    def is_leader(self) -> bool:
        """Whether this process may still rely on leading. No I/O: check it before each step of the work."""
        return self.is_held

    def resign(self, to: str | None = None) -> None:
        """Stop leading; the next standby leads at once.

        Args:
            to: the holder of the standby to hand over to; None: the first in line.

        Raises:
            LeaseLost: the term was lost before.
            BadOption: no such standby; the term goes on.
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
            f"term {self.fence} of {self.pk!r} belongs to this process: pass on its name and number instead"
        )

    def _report_leak(self, why: str) -> None:
        """Report nothing: a program that always leads need not keep the handle."""

    def _move_to_front(self, holder: str) -> None:
        connection = connections[self.using]
        tickets = standbys(self.using, self.model, self.pk)
        first = retrying(connection, lambda: tickets.aggregate(Min("priority"))["priority__min"] or 0)
        front = Least(F("priority"), Value(first - 1))
        if not retrying(connection, lambda: tickets.filter(holder=holder).update(priority=front)):
            names = tickets.order_by("priority", "pk").values_list("holder", flat=True)[:MAX_NAMED_STANDBYS]
            raise BadOption("to", holder, "a standby: " + (", ".join(names) or "none at present"))

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if self._stores_resignation:
            own_row = verbs.rows_of(connection, self.model).filter(pk=self.pk, fence=self.fence)
            retrying(connection, lambda: own_row.update(resigned_term=self.fence))
        return super()._send_release(connection)


def standbys(using: str, model: Any, name: str) -> Any:
    """Return the tickets of the standbys of the election ``name``."""
    return Ticket.objects.using(using).for_rows_of(model).waiting().filter(selector=selector(name))
