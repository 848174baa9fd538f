"""The input fields of operations, with units and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.resources.queryset import MAX_DURATION
from resourcepool.translation import gettext_noop as _


@dataclass(frozen=True, kw_only=True)
class TextField:
    """One line of text.

    Attributes:
        max_length: the maximum number of characters.
        is_required: whether "" is refused.
        error_for: returns an error message for a line that is not allowed, otherwise "".
        is_own_name: pages fill in the name of the operator.
    """

    name: str
    label: Any
    help: Any = ""
    max_length: int
    is_required: bool = True
    error_for: Callable[[str], str] = lambda _line: ""
    is_own_name: bool = False

    @property
    def option(self) -> str:
        """The option of commands."""
        return f"--{self.name}"

    def clean(self, value: Any, *, is_required: bool = True) -> str:
        """Return the line; raises BadOption."""
        # Before the check of its length, so that for 20 digits the error is about numbers.
        is_checked = isinstance(value, str) and (value or not is_required)
        if is_checked and (wrong := self.error_for(value[: self.max_length + 1])):
            raise BadOption(self.name, value, wrong)
        if value:
            return options.text(self.option, value, most=self.max_length)
        if self.is_required and is_required:
            why = Sentence(_("required, one line of 1 to %(count)s characters"), count=self.max_length)
            raise BadOption(self.option, Hidden(), because=why)
        return ""


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
        if value is None and self.is_required and is_required:
            raise BadOption(self.option, Hidden(), because=Sentence(_("required, in seconds")))
        if value is None:
            return None
        return options.seconds(self.option, value, least=1, most=MAX_DURATION)


Field = TextField | DurationField
