"""The SQL of the verbs, built once per model and database."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect import KeyField, cached_per_database, micros
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.db.open_transaction import callers_blocks
from resourcepool.db.retry import fetch_rows
from resourcepool.leases.models import LeaseQuerySet, Model, table_of

Held = Sequence[tuple[Any, int]]  # (primary key, fence) pairs
Spans = float | Sequence[float]  # seconds: for all of them, or for each
ClaimStatement = tuple[str, Callable[[Any], int | None]]
Columns = tuple[tuple[str, str], ...]  # names of columns, and their new values in SQL

MAX_CACHED_STATEMENTS = 10_000
FRESH_FENCE = " under a fresh fence"  # suffix of a verb


def key(connection: BaseDatabaseWrapper, model: Model, pk: Any) -> Any:
    """Return a primary key as the driver expects it (a UUID is text on MySQL)."""
    field: Any = model._meta.pk
    if type(pk) is int or (type(pk) is str and isinstance(field, KeyField)):
        return pk
    return field.get_db_prep_value(pk, connection)


class Sql(str):
    """A column's new value in SQL; ``{now}`` is the start of the statement by the database's clock."""

    __slots__ = ()


NOW = Sql("{now}")
NOTHING: Mapping[str, Any] = MappingProxyType({})


def change(
    connection: BaseDatabaseWrapper,
    model: Model,
    verb: str,
    held: Held,
    spans: Spans = (),
    *texts: str,
    where: Where = ANY_ROW,
    also: Mapping[str, Any] = NOTHING,
) -> int:
    """Send the verb's statement for these leases, if they match ``where``, without retries; return how many changed.

    Args:
        verb: "renew", "release", "hand over", "adopt", or "delete".
        spans: seconds from now for which the rows are busy; none for "delete".
        texts: the new holder, if the verb writes one.
        also: new values of further columns: plain ones, or ``Sql``.
    """
    keys = [key(connection, model, pk) for pk, _ in held]
    each = [micros(span) for span in spans] if isinstance(spans, Sequence) else [micros(spans)]
    columns = tuple((name, value if isinstance(value, Sql) else "%s") for name, value in also.items())
    values = [_stored(connection, model, *new) for new in also.items() if not isinstance(new[1], Sql)]
    differ = len(set(each)) > 1
    if len(held) == 1:
        sql, match = _one_row_sql(connection, model, verb, columns), [keys[0], held[0][1]]
    else:
        sql = _compose(connection, model, verb, len(held), columns, differ=differ)
        match = [*keys, *_pairs(keys, [fence for _, fence in held])]
    params = [*(_pairs(keys, each) if differ else each[:1]), *texts, *values, *match]
    return dialect.run(connection, sql + where.sql, [*params, *where.params], dialect.row_count)


def still_current(key: str, fence: str, keys: Sequence[str], fences: Sequence[str]) -> str:
    """Return the condition that rows still have the fences of these leases; the arguments are SQL.

    Params of "%s": the keys, and then each key with its fence.
    """
    # Not "(key, fence) IN (..)": for a single pair MariaDB reads the whole table.
    return f"{key} IN ({', '.join(keys)}) AND {fence} = {by_key(key, keys, fences)}"


def by_key(key: str, keys: Sequence[str], values: Sequence[str]) -> str:
    """Return the expression that has a value for each key; the arguments are SQL."""
    cases = " ".join(f"WHEN {one} THEN {value}" for one, value in zip(keys, values, strict=True))
    return f"CASE {key} {cases} END"


def _pairs(keys: list[Any], values: list[int]) -> list[Any]:
    return [param for pair in zip(keys, values, strict=True) for param in pair]


def _stored(connection: BaseDatabaseWrapper, model: Model, name: str, value: Any) -> Any:
    field: Any = model._meta.get_field(name)
    return field.get_db_prep_save(value, connection)


_sql_cache: dict[tuple[Any, ...], str] = {}
_claims: dict[tuple[Any, ...], ClaimStatement] = {}


def granting_verb(connection: BaseDatabaseWrapper, verb: str) -> str:
    """Return ``verb``, in a transaction of the caller with a fresh fence that no other grant can get.

    A rollback would undo an ordinary fence, and the next grant would repeat the one that a handle already has.
    """
    if connection.atomic_blocks:
        return f"{verb}{FRESH_FENCE}" if callers_blocks(connection) else verb
    is_open = connection.connection is not None  # only then Django knows about autocommit
    return f"{verb}{FRESH_FENCE}" if is_open and not connection.autocommit else verb


def claim_statement(connection: BaseDatabaseWrapper, model: Model, where: Where) -> ClaimStatement:
    """Return the UPDATE that claims one row, and the function that reads the fence of the claimed row.

    Parameters of the SQL: microseconds, holder, primary key, those of ``where``.
    """
    verb = granting_verb(connection, "claim")
    which = (model, connection.alias, where.sql, verb)
    if which not in _claims:
        db_dialect, table = dialect.of(connection), table_of(connection, model)
        sql = db_dialect.claim_nowait(
            connection, _one_row_sql(connection, model, verb) + where.sql, table.name, table.pk
        )
        if len(_claims) >= MAX_CACHED_STATEMENTS:  # each selector has its own
            _claims.clear()
        sql += db_dialect.returning.format(fence=table.fence)
        _claims[which] = sql, db_dialect.fence_after_update
    return _claims[which]


def _one_row_sql(connection: BaseDatabaseWrapper, model: Model, verb: str, columns: Columns = ()) -> str:
    """Return the (cached) statement of this verb for one row."""
    which = (model, connection.vendor, verb, columns)
    if which not in _sql_cache:
        _sql_cache[which] = _compose(connection, model, verb, 1, columns)
    return _sql_cache[which]


def _compose(
    connection: BaseDatabaseWrapper,
    model: Model,
    verb: str,
    count: int,
    columns: Columns = (),
    *,
    differ: bool = False,
) -> str:
    db_dialect, table, marks = dialect.of(connection), table_of(connection, model), ["%s"] * count
    busy, fence, holder = table.busy_before, table.fence, table.holder
    later = db_dialect.later
    if differ:
        later = later.replace("%s", f"({by_key(table.pk, marks, marks)})")
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
    match = f"{table.pk} = %s AND {fence} = %s" if count == 1 else still_current(table.pk, fence, marks, marks)
    if verb == "delete":
        return f"DELETE FROM {table.name} WHERE {match}"  # noqa: S608 (quoted names)
    also = "".join(
        f", {table.columns[name]} = {value.format(now=db_dialect.indexed_now)}" for name, value in columns
    )
    update = f"UPDATE {table.name} SET {changes[verb]}{also} WHERE {match}"  # noqa: S608 (quoted names)
    return update + (f" AND {busy} > {db_dialect.now}" if verb in ("renew", "adopt") else "")


# One row as a model instance, in a quarter of Django's time, because the SQL is built only once


class _Reader:
    """The SELECT for one model on one database.

    Attributes:
        names: attribute names of the model's fields, in the order of the columns.
        converted: columns with converters, and their positions.
    """

    def __init__(self, connection: BaseDatabaseWrapper, model: Model) -> None:
        fields = model._meta.concrete_fields
        columns = [field.get_col(field.model._meta.db_table) for field in fields]
        select, _ = LeaseQuerySet(model=model, using=connection.alias).order_by().query.sql_with_params()
        table = table_of(connection, model)
        self.sql = f"{select} WHERE {table.name}.{table.pk} = %s"
        self.names = [field.attname for field in fields]
        self.converted = [(at, column) for at, column in enumerate(columns) if _converters(connection, column)]


_reader_of = cached_per_database(_Reader)


def instance(connection: BaseDatabaseWrapper, model: Model, pk: Any) -> Any:
    """Return the model instance with this primary key, None if there is no such row; raises as ``retrying``."""
    reader = _reader_of(connection, model)
    rows = fetch_rows(connection, reader.sql, [key(connection, model, pk)])
    if not rows:
        return None
    values = list(rows[0])
    for at, column in reader.converted:
        for convert in _converters(connection, column):
            values[at] = convert(values[at], column, connection)
    return model.from_db(connection.alias, reader.names, values)


def _converters(connection: BaseDatabaseWrapper, column: Any) -> list[Any]:
    return [*connection.ops.get_db_converters(column), *column.get_db_converters(connection)]
