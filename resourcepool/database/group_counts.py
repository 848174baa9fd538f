"""Counts the rows of many groups in one statement, each group up to a limit."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def count_groups(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str
) -> list[Counter[tuple[Any, ...]]]:
    """Return, for each of ``groups``, {values of ``columns``: number of rows}.

    Args:
        groups: querysets of exactly these columns, each with its own limit; at most 500, SQLite's limit.
    """
    counted: list[Counter[tuple[Any, ...]]] = [Counter() for _ in groups]
    names = ", ".join(columns)
    for number, *values, count in _of_each(connection, groups, f"{names}, COUNT(*)", f"GROUP BY {names}"):
        counted[number][tuple(values)] = count
    return counted


def count_groups_since(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str, since: str
) -> list[dict[tuple[Any, ...], tuple[int, Any]]]:
    """``count_groups`` that adds to each number the lowest value of the column ``since``, or None."""
    counted: list[dict[tuple[Any, ...], tuple[int, Any]]] = [{} for _ in groups]
    names = ", ".join(columns)
    selected = f"{names}, COUNT(*), MIN({since})"
    for number, *values, count, first in _of_each(connection, groups, selected, f"GROUP BY {names}"):
        counted[number][tuple(values)] = count, first
    return counted


def count_and_min(connection: BaseDatabaseWrapper, groups: Sequence[Any], column: str) -> list[tuple[int, Any]]:
    """Return, for each of ``groups``, its number of rows, and the lowest value of ``column``, or None.

    Args:
        groups: querysets of exactly this column; see ``count_groups``.
    """
    rows = sorted(_of_each(connection, groups, f"COUNT(*), MIN({column})"))
    return [(count, value) for _number, count, value in rows]


def _of_each(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], selected: str, grouped: str = ""
) -> list[tuple[Any, ...]]:
    """Return the rows of all groups, each preceded by the number of its group."""
    if not groups:
        return []
    parts, params = [], list[Any]()
    for number, rows in enumerate(groups):
        sql, values = rows.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT {number}, {selected} FROM ({sql}) counted {grouped}")  # noqa: S608 (values apart)
        params += values
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        return list(cursor.fetchall())
