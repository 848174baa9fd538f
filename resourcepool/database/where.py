"""A piece of SQL with its parameters, mostly an additional condition on one table."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Where:
    """SQL text and its parameters. A condition begins with " AND ", or is empty for "any row"."""

    sql: str = ""
    params: tuple[Any, ...] = ()


ANY_ROW = Where()
