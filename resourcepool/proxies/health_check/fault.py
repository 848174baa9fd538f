"""Why a check failed."""

from resourcepool.resources.state import Verdict


class Fault(Exception):
    """What went wrong and whose fault it was; ``why`` is our own text, as a library's may carry secrets."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict, self.why = verdict, why


class NotPublic(Fault):
    """An address that is only connected to if the settings allow it."""
