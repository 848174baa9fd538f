"""The verbs that change a leased row. Each is one UPDATE whose row count is the answer.

Of two equal ``UPDATE .. WHERE`` exactly one reports a changed row. A fencing token proves the ownership.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import dialect, transactions
from resourcepool.db.dialect import DbNow, micros
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import for_update
from resourcepool.db.timeouts import TIMEOUT_GRACE, statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.models import LeaseQuerySet, Model
from resourcepool.leases.statements import Held, Spans, change, claim_statement, granting_verb, key
from resourcepool.leases.terms import Grant, Terms, default_holder

BATCH = 1_000
TAKEN = sentence_for("taken")
OWN_ERRORS = (DatabaseError, InterfaceError, ResourcePoolError)  # others are raised by signal handlers


def claim(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, terms: Terms, where: Where = ANY_ROW
) -> Grant | None:
    """Claim one row if it is free and matches ``where``; returns None if it does not, or another claim was faster.

    Raises:
        DatabaseUnavailable: it is unknown whether it was granted; if it was, it expires unused.
    """
    holder = terms.holder or default_holder()
    params = [micros(terms.ttl), holder, key(connection, model, pk), *where.params]
    first_sent_at: float | None = None

    def send() -> Grant | None:
        nonlocal first_sent_at
        # Inside, because it may query the server's version, which is retried, too.
        sql, read_fence = claim_statement(connection, model, where)
        sent_at = monotonic()
        first_sent_at = first_sent_at or sent_at
        fence = dialect.run_for_number(connection, sql, params, read_fence)
        return None if fence is None else Grant(pk, fence, holder, sent_at)

    def settle() -> Grant | None:
        if not terms.holder_is_unique:
            return None  # it may be another caller's grant; ours would expire unused
        fences = live_fences(connection, model, [pk], holder=holder)
        if not fences:
            raise Unsettled
        return Grant(pk, fences[pk], holder, first_sent_at or 0.0)  # the first attempt may have taken effect

    try:
        return retrying(connection, send, settle=settle, busy=lambda: None)
    except BaseException as error:
        _undo_interrupted(error, connection, model, [pk], terms, holder)
        raise


def adopt(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, terms: Terms) -> Grant | None:
    """Adopt a row that was handed over under ``fence``, as a new grant; returns None if that lease has ended.

    Raises:
        DatabaseUnavailable: it is unknown whether it was granted; if it was, it expires unused.
    """
    name, first_sent_at = terms.holder or default_holder(), monotonic()

    def settle() -> int:
        """Return the new fence, or 0 if it was not adopted; raises Unsettled if the old fence shows that."""
        row = _grant_of(connection, model, pk)
        if row is not None and row[0] == fence:
            raise Unsettled
        # Under a shared name it may be another caller's grant; ours would expire unused.
        return fence + 1 if terms.holder_is_unique and row == (fence + 1, name) else 0

    send = partial(_grant, connection, model, "adopt", pk, fence, terms.ttl, name)
    new = retrying(connection, send, settle=settle)
    return Grant(pk, new, name, first_sent_at) if new else None


def claim_all(
    connection: BaseDatabaseWrapper, model: Model, pks: Sequence[Any], terms: Terms
) -> list[Grant] | None:
    """Claim all of these rows in one transaction; returns None, and claims none, if not all are free."""
    sent_at, holder, verb = 0.0, terms.holder or default_holder(), granting_verb(connection, "hand over")

    def send() -> list[Grant] | None:
        nonlocal sent_at
        with transactions.short_transaction(connection):
            free = rows_of(connection, model).available().filter(pk__in=pks)
            fences = dict(for_update(free, skip_locked=True).values_list("pk", "fence"))
            if len(fences) < len(pks):
                return None
            sent_at = monotonic()
            change(connection, model, verb, list(fences.items()), terms.ttl, holder)
            if verb == "hand over":
                grants = [(pk, fence + 1) for pk, fence in fences.items()]
            else:
                grants = list(
                    rows_of(connection, model).filter(pk__in=pks).values_list("pk", "fence").order_by("pk")
                )
        return [Grant(pk, fence, holder, sent_at) for pk, fence in grants]

    def settle() -> list[Grant] | None:
        if not terms.holder_is_unique:
            return None
        fences = live_fences(connection, model, pks, holder=holder)
        if not fences:
            raise Unsettled
        return [Grant(pk, fence, holder, sent_at) for pk, fence in fences.items()]

    try:
        return retrying(connection, send, settle=settle, busy=lambda: None)
    except BaseException as error:
        _undo_interrupted(error, connection, model, pks, terms, holder)
        raise


def renew(connection: BaseDatabaseWrapper, model: Model, held: Held, ttl: float) -> int:
    """Extend up to ``BATCH`` leases to now + ``ttl`` seconds, never shortening one.

    Returns:
        How many were still held; ``live_fences`` returns which.
    """
    return retrying(connection, partial(change, connection, model, "renew", held, ttl))


def renew_unless_locked(connection: BaseDatabaseWrapper, model: Model, held: Held, ttls: Spans) -> int | None:
    """``renew``; returns None, and renews nothing, if a transaction locks one of the rows."""
    send: Callable[[], int | None] = partial(change, connection, model, "renew", held, ttls)
    return retrying(connection, send, busy=lambda: None)


def release(
    connection: BaseDatabaseWrapper,
    model: Model,
    pk: Any,
    fence: int,
    cooldown: float,
    *,
    trusted_until: float = 0.0,
) -> bool:
    """Release a lease; its row becomes free after ``cooldown`` seconds. Returns False if it was lost before.

    Args:
        trusted_until: the time, by this process's clock, until which no other process can have claimed the row.
    """
    send = partial(change, connection, model, "release", [(pk, fence)], cooldown)
    settle = partial(settle_release, connection, model, pk, fence, trusted_until)
    return retrying(connection, send, settle=settle) == 1


def settle_release(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, trusted_until: float = 0.0
) -> int:
    """Settle a release or a quarantine whose reply was lost: 1: it took effect; 0: the lease was lost before.

    Raises:
        Unsettled: neither; the lease is still active.
    """
    row = _grant_of(connection, model, pk)
    if row is None:
        return 0
    if row[0] == fence:
        raise Unsettled
    # Either the row shows the release, or no other process can have changed it yet.
    return int(row == (fence + 1, "") or monotonic() < trusted_until)


def remove(connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int) -> bool:
    """Delete a leased row. Returns False if the lease was lost before."""
    return retrying(connection, partial(change, connection, model, "delete", [(pk, fence)])) > 0


def release_all(
    connection: BaseDatabaseWrapper, model: Model, held: Held, cooldowns: Spans, where: Where = ANY_ROW
) -> int:
    """Release up to ``BATCH`` leases that match ``where``, without retries; returns how many were released."""
    return change(connection, model, "release", held, cooldowns, where=where)


def hand_over(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, *, to: str, ttl: float
) -> int:
    """Hand a lease over to ``to`` for ``ttl`` seconds; returns the new fence, or 0 if the lease was lost."""

    def settle() -> int:
        row = _grant_of(connection, model, pk)
        if row is not None and row[0] == fence:
            raise Unsettled
        return fence + 1 if row == (fence + 1, to) else 0

    send = partial(_grant, connection, model, "hand over", pk, fence, ttl, to)
    return retrying(connection, send, settle=settle)


def _grant(
    connection: BaseDatabaseWrapper, model: Model, verb: str, pk: Any, fence: int, ttl: float, holder: str
) -> int:
    """Send a verb that replaces this lease by a new grant; returns the new fence, or 0 if the lease was lost."""
    full_verb = granting_verb(connection, verb)
    if change(connection, model, full_verb, [(pk, fence)], ttl, holder) != 1:
        return 0
    if full_verb == verb:
        return fence + 1
    return int(rows_of(connection, model).values_list("fence", flat=True).get(pk=pk))


def _grant_of(connection: BaseDatabaseWrapper, model: Model, pk: Any) -> tuple[int, str] | None:
    """Return fence and holder of this row; None if there is none."""
    return rows_of(connection, model).filter(pk=pk).values_list("fence", "holder").first()


def live_fences(
    connection: BaseDatabaseWrapper, model: Model, pks: Sequence[Any], *, holder: str | None = None
) -> dict[Any, int]:
    """Return {primary key: fence} of the rows in ``pks`` with an active lease (of ``holder``, if given)."""
    rows = rows_of(connection, model).filter(pk__in=pks, busy_before__gt=DbNow())
    if holder is not None:
        rows = rows.filter(holder=holder)
    return dict(rows.values_list("pk", "fence"))


def rows_of(connection: BaseDatabaseWrapper, model: Model) -> LeaseQuerySet:
    """Return all rows of ``model`` on this connection's database, bypassing its default manager."""
    return LeaseQuerySet(model=model, using=connection.alias)


def _undo_interrupted(
    error: BaseException,
    connection: BaseDatabaseWrapper,
    model: Model,
    pks: Sequence[Any],
    terms: Terms,
    holder: str,
) -> None:
    """Release the grant of a claim that a signal handler interrupted with ``error``, because no handle exists.

    If that fails, or the holder's name is shared, the grant expires unused.
    """
    if isinstance(error, OWN_ERRORS) or not terms.holder_is_unique or connection.in_atomic_block:
        return

    def undo() -> None:
        with transactions.short_transaction(connection):
            # The lock waits for a claim that is still under way.
            rows = for_update(rows_of(connection, model).filter(pk__in=pks))
            held = [
                (pk, fence) for pk, fence, name in rows.values_list("pk", "fence", "holder") if name == holder
            ]
            if held:
                release_all(connection, model, held, 0.0)

    with contextlib.suppress(*OWN_ERRORS), statement_timeout(TIMEOUT_GRACE):
        retrying(connection, undo, busy=lambda: None)
