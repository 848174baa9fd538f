"""Counts rows of many groups in one statement, of each group up to a limit."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def count_groups(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str
) -> list[Counter[tuple[Any, ...]]]:
    """Return, for each of ``groups``, how many of its rows have which values in ``columns``.

    Args:
        groups: querysets of exactly these columns, each with its limit; at most 500, which is SQLite's limit.
    """
    counted: list[Counter[tuple[Any, ...]]] = [Counter() for _ in groups]
    names = ", ".join(columns)
    for number, *found, count in _of_each(connection, groups, f"{names}, COUNT(*)", f"GROUP BY {names}"):
        counted[number][tuple(found)] = count
    return counted


def count_groups_since(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str, since: str
) -> list[dict[tuple[Any, ...], tuple[int, Any]]]:
    """Return the same, each number with the least value in the column ``since``; None: there is none."""
    counted: list[dict[tuple[Any, ...], tuple[int, Any]]] = [{} for _ in groups]
    names = ", ".join(columns)
    wanted = f"{names}, COUNT(*), MIN({since})"
    for number, *found, count, first in _of_each(connection, groups, wanted, f"GROUP BY {names}"):
        counted[number][tuple(found)] = count, first
    return counted


def count_and_min(connection: BaseDatabaseWrapper, groups: Sequence[Any], column: str) -> list[tuple[int, Any]]:
    """Return, for each of ``groups``, how many rows it has, and the least value in ``column``; None if it has none.

    Args:
        groups: querysets of exactly this column; as for ``count_groups``.
    """
    found = sorted(_of_each(connection, groups, f"COUNT(*), MIN({column})"))
    return [(count, value) for _number, count, value in found]


def _of_each(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], wanted: str, grouped: str = ""
) -> list[tuple[Any, ...]]:
    """Return the rows of all groups, each row headed by the number of its group."""
    if not groups:
        return []
    parts, params = [], list[Any]()
    for number, rows in enumerate(groups):
        sql, values = rows.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT {number}, {wanted} FROM ({sql}) counted {grouped}")  # noqa: S608 (values apart)
        params += values
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        return list(cursor.fetchall())
