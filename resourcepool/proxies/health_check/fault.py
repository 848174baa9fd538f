"""Why a check failed."""

from resourcepool.resources.state import Verdict


class Fault(Exception):
    """A failed check. ``why`` is our own text, because texts of libraries may contain secrets."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict, self.why = verdict, why


class NotPublic(Fault):
    """The address is not public, and the settings do not allow it."""
