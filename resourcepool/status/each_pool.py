"""Reads one pool after the other; a pool without a table does not hide the others."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from resourcepool.exceptions import NotMigrated

Result = TypeVar("Result")


def of_each(models: Iterable[Any], read: Callable[[Any], Result]) -> dict[Any, Result]:
    """Return {model: result of ``read``}, without models whose table does not exist yet.

    Raises:
        NotMigrated: none has a table.
    """
    found, missing = {}, None
    for model in models:
        try:
            found[model] = read(model)
        except NotMigrated as error:
            missing = error
    if missing is not None and not found:
        raise missing
    return found
