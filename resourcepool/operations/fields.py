"""The input fields of operations, with units and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resourcepool import options
from resourcepool.resources.queryset import MAX_DURATION


@dataclass(frozen=True, kw_only=True)
class TextField:
    """One line of text.

    Attributes:
        max_length: the maximum number of characters.
        is_required: whether "" is refused.
        error_for: returns an error message for a line that is not allowed, otherwise "".
    """

    name: str
    label: Any
    help: Any = ""
    max_length: int
    is_required: bool = True
    error_for: Callable[[str], str] = lambda _line: ""

    @property
    def option(self) -> str:
        """The option of commands."""
        return f"--{self.name}"

    def clean(self, value: Any, *, is_required: bool = True) -> str:
        """Return the line; raises BadOption."""
        return (
            options.text(self.option, value, most=self.max_length)
            if value or (self.is_required and is_required)
            else ""
        )


@dataclass(frozen=True, kw_only=True)
class DurationField:
    """A duration from a second to 30 days; None, if it is not required: until further notice."""

    name: str = "duration"
    label: Any
    help: Any = ""
    is_required: bool = False
    option = "--for"

    def clean(self, value: Any, *, is_required: bool = True) -> float | None:
        """Return the seconds; raises BadOption."""
        if value is None and not (self.is_required and is_required):
            return None
        return options.seconds(self.option, value, least=1, most=MAX_DURATION)


Field = TextField | DurationField
