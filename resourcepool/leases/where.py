"""A further condition on the rows of one table."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Where:
    """SQL text that begins with " AND ", and its parameters; empty for "any row"."""

    sql: str = ""
    params: tuple[Any, ...] = ()


ANYWHERE = Where()
