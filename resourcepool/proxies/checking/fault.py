"""Why a check did not go well."""

from resourcepool.resources.state import Verdict


class Fault(Exception):
    """What went wrong and whose fault it was; ``why`` is in our own words, because others' may carry secrets."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict, self.why = verdict, why


class NotPublic(Fault):
    """An address that must not be spoken to unless the settings allow it."""
