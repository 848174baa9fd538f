"""The fields of an operation: what the operator is asked for, with units and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resourcepool import options
from resourcepool.resources.queryset import LONGEST


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of text, of at most ``most`` characters; "" where none is needed.

    ``otherwise_wrong`` returns what else is wrong with a line, as a sentence; "": nothing.
    """

    name: str
    label: Any
    help: Any = ""
    most: int
    is_needed: bool = True
    otherwise_wrong: Callable[[str], str] = lambda _line: ""

    @property
    def option(self) -> str:
        """Its name in commands."""
        return f"--{self.name}"

    def checked(self, value: Any, *, is_needed: bool = True) -> str:
        """Return the line; raises BadOption."""
        return (
            options.text(self.option, value, most=self.most) if value or (self.is_needed and is_needed) else ""
        )


@dataclass(frozen=True, kw_only=True)
class Span:
    """A span of time, from a second to 30 days; None, where none is needed: until further notice."""

    name: str = "duration"
    label: Any
    help: Any = ""
    is_needed: bool = False
    option = "--for"

    def checked(self, value: Any, *, is_needed: bool = True) -> float | None:
        """Return the seconds; raises BadOption."""
        if value is None and not (self.is_needed and is_needed):
            return None
        return options.seconds(self.option, value, least=1, most=LONGEST)


Field = Line | Span
