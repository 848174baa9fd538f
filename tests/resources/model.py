"""The expected state of a small pool: the model of ``test_any_order``."""

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Thing:
    """One row."""

    row: Any
    fence: int = 0
    is_busy: bool = False
    holder: str = ""
    in_service: bool = True
    status: str = "in_service"

    @property
    def is_free(self) -> bool:
        """Whether a claim is granted."""
        return self.in_service and not self.is_busy

    def state(self) -> tuple[Any, ...]:
        """Return the expected database state."""
        return self.fence, self.is_busy, bool(self.holder), self.in_service, self.status

    def pass_on(self, holder: str, *, is_busy: bool = True) -> int:
        """A claim, release, quarantine or handover: return the new fence."""
        self.fence, self.holder, self.is_busy = self.fence + 1, holder, is_busy
        return self.fence

    def park(self) -> None:
        """Quarantine it; decisions of operators stay."""
        self.pass_on("")
        if self.in_service:
            self.status = "quarantined"

    def drain(self) -> None:
        """Take it out of service; a running lease is not disturbed."""
        self.in_service, self.status = False, "out_of_service"

    def return_to_service(self) -> None:
        """Return it to service; a running lease is not disturbed."""
        if self.status != "in_service" and not self.holder and self.is_busy:
            self.pass_on("", is_busy=False)
        self.in_service, self.status = True, "in_service"


@dataclass(eq=False)
class ActiveLease:
    """One grant and its handle."""

    lease: Any
    thing: Thing
    fence: int
    is_trusted: bool = True  # the process's own clock says nothing against it
    is_told: bool = False  # the handle knows that it is lost

    @property
    def is_resource(self) -> bool:
        """Whether it was acquired from the pool, not with the bare verbs."""
        return hasattr(self.lease, "quarantine")

    @property
    def is_current(self) -> bool:
        """Whether the row was not claimed since."""
        return self.thing.fence == self.fence

    @property
    def is_live(self) -> bool:
        """Whether it is held in the database."""
        return self.is_current and self.thing.is_busy

    @property
    def is_usable(self) -> bool:
        """Whether the handle allows its use, rightly or not."""
        return self.is_trusted and not self.is_told
