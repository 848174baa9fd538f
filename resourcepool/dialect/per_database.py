"""SQL that is composed once for each database."""

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from django.db.backends.base.base import BaseDatabaseWrapper

Args = TypeVarTuple("Args")
Made = TypeVar("Made")


def cached_per_database(
    make: Callable[[BaseDatabaseWrapper, *Args], Made],
) -> Callable[[BaseDatabaseWrapper, *Args], Made]:
    """Return ``make`` with a cache: one result for each database and further arguments."""
    results: dict[Any, Made] = {}

    def cached(connection: BaseDatabaseWrapper, *args: *Args) -> Made:
        which = (connection.vendor, connection.alias, args)
        try:
            return results[which]
        except KeyError:
            made = results[which] = make(connection, *args)
            return made

    return cached
