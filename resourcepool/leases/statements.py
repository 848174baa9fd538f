"""The SQL of the verbs, built once per model and database."""

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.open_transaction import callers_blocks
from resourcepool.database.where import ANY_ROW, Where
from resourcepool.dialect import KeyField, micros
from resourcepool.leases.table import Model, table_of

Held = Sequence[tuple[Any, int]]  # (primary key, fence) pairs
Spans = float | Sequence[float]  # seconds: for all of them, or for each

MAX_CACHED_STATEMENTS = 10_000
FRESH_FENCE = " under a fresh fence"  # suffix of a verb


def key(connection: BaseDatabaseWrapper, model: Model, pk: Any) -> Any:
    """Return a primary key as the driver expects it (a UUID is text on MySQL)."""
    field: Any = model._meta.pk
    if type(pk) is int or (type(pk) is str and isinstance(field, KeyField)):
        return pk
    return field.get_db_prep_value(pk, connection)


def change(
    connection: BaseDatabaseWrapper,
    model: Model,
    verb: str,
    held: Held,
    spans: Spans,
    *texts: str,
    where: Where = ANY_ROW,
) -> int:
    """Send the verb's UPDATE for these leases, if they match ``where``, without retries; returns the changed rows.

    Args:
        spans: seconds from now for which the rows are busy.
        texts: the new holder, if the verb writes one.
    """
    keys = [key(connection, model, pk) for pk, _ in held]
    each = [micros(span) for span in spans] if isinstance(spans, Sequence) else [micros(spans)]
    if len(held) == 1:
        sql, params = _update_sql(connection, model, verb), [each[0], *texts, keys[0], held[0][1]]
    else:
        differ = len(set(each)) > 1
        sql = _compose(connection, model, verb, len(held), differ=differ)
        fences = _by_key(keys, [fence for _, fence in held])
        params = [*(_by_key(keys, each) if differ else each[:1]), *texts, *keys, *fences]
    return dialect.run(connection, sql + where.sql, [*params, *where.params], dialect.row_count)


def _by_key(keys: list[Any], values: list[int]) -> list[Any]:
    """Return the parameters of a CASE expression."""
    return [param for pair in zip(keys, values, strict=True) for param in pair]


_sql_cache: dict[tuple[Any, ...], str] = {}


def granting_verb(connection: BaseDatabaseWrapper, verb: str) -> str:
    """Return ``verb``, in a transaction of the caller with a fresh fence that no other grant can get.

    A rollback would undo an ordinary fence, and the next grant would repeat the one that a handle already has.
    """
    if connection.atomic_blocks:
        return f"{verb}{FRESH_FENCE}" if callers_blocks(connection) else verb
    is_open = connection.connection is not None  # only then Django knows about autocommit
    return f"{verb}{FRESH_FENCE}" if is_open and not connection.autocommit else verb


def claim_sql(connection: BaseDatabaseWrapper, model: Model, where: Where) -> str:
    """Return the UPDATE that claims one row; parameters: microseconds, holder, primary key, those of ``where``."""
    verb = granting_verb(connection, "claim")
    which = (model, connection.alias, where.sql, verb)
    if which not in _sql_cache:
        db_dialect, table = dialect.of(connection), table_of(connection, model)
        sql = db_dialect.claim_nowait(
            connection, _update_sql(connection, model, verb) + where.sql, table.name, table.pk
        )
        if len(_sql_cache) >= MAX_CACHED_STATEMENTS:  # each selector has its own
            _sql_cache.clear()
        _sql_cache[which] = sql + db_dialect.returning.format(fence=table.fence)
    return _sql_cache[which]


def _update_sql(connection: BaseDatabaseWrapper, model: Model, verb: str) -> str:
    """Return the (cached) UPDATE of this verb for one row."""
    key = (model, connection.vendor, verb)
    if key not in _sql_cache:
        _sql_cache[key] = _compose(connection, model, verb, 1)
    return _sql_cache[key]


def _compose(
    connection: BaseDatabaseWrapper, model: Model, verb: str, count: int, *, differ: bool = False
) -> str:
    db_dialect, table = dialect.of(connection), table_of(connection, model)
    busy, fence, holder = table.busy_before, table.fence, table.holder
    by_key = f"CASE {table.pk}{' WHEN %s THEN %s' * count} END"
    later = db_dialect.later.replace("%s", f"({by_key})") if differ else db_dialect.later
    number = db_dialect.fresh_number.format(micros_now=db_dialect.micros_now)
    last = f"{db_dialect.greatest}({fence}, {number})" if verb.endswith(FRESH_FENCE) else fence
    verb = verb.removesuffix(FRESH_FENCE)
    changes = {
        "claim": f"{busy} = {later}, {fence} = {db_dialect.next_fence.format(fence=last)}, {holder} = %s",
        "hand over": f"{busy} = {later}, {fence} = {last} + 1, {holder} = %s",
        "renew": f"{busy} = {db_dialect.greatest}({busy}, {later})",
        "release": f"{busy} = {later}, {fence} = {fence} + 1, {holder} = ''",
        "adopt": f"{busy} = {later}, {fence} = {last} + 1, {holder} = %s",
    }
    if verb == "claim":
        # With few free rows, MariaDB would use the index on ``busy_before``, read unpurged entries of earlier leases
        # and lock them.
        hint = db_dialect.by_index.format(index="PRIMARY")
        return f"UPDATE {table.name}{hint} SET {changes[verb]} WHERE {table.pk} = %s AND {table.free}"  # noqa: S608
    update = f"UPDATE {table.name} SET {changes[verb]} WHERE "  # noqa: S608 (quoted names)
    if count == 1:
        match = f"{table.pk} = %s AND {fence} = %s"
    else:
        # Not "(pk, fence) IN (..)": for a single pair MariaDB reads the whole table.
        keys = ", ".join(["%s"] * count)
        match = f"{table.pk} IN ({keys}) AND {fence} = {by_key}"
    return update + match + (f" AND {busy} > {db_dialect.now}" if verb in ("renew", "adopt") else "")
