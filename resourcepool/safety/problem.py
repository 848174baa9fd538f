"""One thing that is not as it should be."""

from dataclasses import dataclass
from typing import ClassVar

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and how to mend it.

    Attributes:
        code: "E005" or "W012"; an error makes ``check`` and ``migrate`` fail.
        about: the database or the model it was found at.
        voids: the promise of one holder at a time does not hold, or nothing can be leased.
    """

    code: str
    about: str
    message: str
    hint: str
    voids: bool = False

    ALSO: ClassVar = ("level", "id", "link")

    @property
    def id(self) -> str:
        """The id under which SILENCED_SYSTEM_CHECKS knows it."""
        return f"resourcepool.{self.code}"

    @property
    def level(self) -> str:
        """Its weight: "unsafe", "advice", or "silenced" by the project."""
        if self.id in settings.SILENCED_SYSTEM_CHECKS:
            return "silenced"
        return "unsafe" if self.is_unsafe else "advice"

    @property
    def link(self) -> str:
        """Where it is explained."""
        return f"docs/checks.md#{self.code.lower()}"

    @property
    def is_error(self) -> bool:
        """Whether ``check`` and ``migrate`` must fail."""
        return self.code.startswith("E")

    @property
    def is_unsafe(self) -> bool:
        """Whether leases must not be relied on while this is so."""
        return self.is_error or self.voids
