"""Claims of rows that are probably free: read a moment ago, or released by this process."""

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.leases import verbs
from resourcepool.leases.request import Request
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant, Terms

MAX_KEYS = 1_000  # whose rows are remembered
MAX_ADDED = 64  # rows for one key
CLAIMS_PER_READ = 3


class FreeRowCache:
    """Rows that were free a moment ago, by any key, so that a claim need not read them. Only the claim decides.

    Args:
        seconds: how long they are remembered.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._free: dict[Any, list[tuple[float, Any]]] = {}

    def put(self, key: Any, pks: Sequence[Any]) -> None:
        """Remember these rows instead of all others for this key; the last one is tried first."""
        until = monotonic() + self.seconds
        self._rows(key)[:] = [(until, pk) for pk in pks]

    def add(self, key: Any, pk: Any) -> None:
        """Remember this row, too."""
        rows = self._rows(key)
        if len(rows) < MAX_ADDED:
            rows.append((monotonic() + self.seconds, pk))

    def take(self, key: Any) -> Any:
        """Return and forget the row that was remembered last; None if there is none."""
        rows = self._free.get(key, [])
        try:
            until, pk = rows.pop()
        except IndexError:  # possibly another thread took the last one
            return None
        if until > monotonic():
            return pk
        rows.clear()  # the rest are older
        return None

    def _rows(self, key: Any) -> list[tuple[float, Any]]:
        if key not in self._free and len(self._free) >= MAX_KEYS:
            self._free.clear()
        return self._free.setdefault(key, [])


def claim(
    connection: BaseDatabaseWrapper, model: Model, pks: Sequence[Any], terms: Terms, where: Where = ANY_ROW
) -> list[Grant] | None:
    """Claim all of these rows, or none; a single one only if it matches ``where``."""
    if len(pks) > 1:
        return verbs.claim_all(connection, model, pks, terms)
    grant = verbs.claim(connection, model, pks[0], terms, where)
    return None if grant is None else [grant]


def claim_first(
    connection: BaseDatabaseWrapper,
    model: Model,
    rows: Sequence[Any],
    request: Request,
    tried: set[Any],
    where: Where = ANY_ROW,
) -> tuple[list[Grant] | None, Sequence[Any]]:
    """Claim as many of ``rows`` as requested, in this order; return the grants and the rows after them.

    Args:
        rows: primary keys of rows that were free when they were read.
        tried: receives rows that were not free.
    """
    count = request.count
    for start in range(0, len(rows) - count + 1, count)[:CLAIMS_PER_READ]:
        chosen = rows[start : start + count]
        if (grants := claim(connection, model, chosen, request.terms, where)) is not None:
            return grants, rows[start + count :]
        tried.update(chosen if count == 1 else ())
    return None, []
