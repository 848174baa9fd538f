"""Counts rows of many groups in one statement, of each group up to a limit."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def tallies(
    connection: BaseDatabaseWrapper, groups: Sequence[Any], *columns: str
) -> list[Counter[tuple[Any, ...]]]:
    """Return, for each of ``groups``, how many of its rows have which values in ``columns``.

    Args:
        groups: querysets of exactly these columns, each with its limit; at most 500, which is SQLite's limit.
    """
    counted: list[Counter[tuple[Any, ...]]] = [Counter() for _ in groups]
    if not groups:
        return counted
    names, parts, params = ", ".join(columns), [], list[Any]()
    for number, rows in enumerate(groups):
        sql, values = rows.query.get_compiler(connection=connection).as_sql()
        parts.append(f"SELECT {number}, {names}, COUNT(*) FROM ({sql}) counted GROUP BY {names}")  # noqa: S608 (values apart)
        params += values
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        for number, *found, count in cursor.fetchall():
            counted[number][tuple(found)] = count
    return counted
