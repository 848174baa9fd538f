"""Has several resources looked at, at once, in threads; everything that concerns the database stays in the caller's."""

import logging
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from resourcepool import options
from resourcepool.database import background
from resourcepool.database.clock import monotonic
from resourcepool.events import Sentence, say
from resourcepool.exceptions import LeaseLost
from resourcepool.resources.state import Verdict
from resourcepool.validity.checker import Checker, Finding
from resourcepool.validity.lease import CheckLease

GRACE = 2.0  # seconds beyond its timeout for which a check is waited for
NAP = 0.5  # seconds: Python may overlook a signal that arrives just as the main thread goes to sleep
MOST_WORDS = 150

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningCheck:
    """One resource that is being looked at."""

    lease: CheckLease
    finding: Future[Finding] = field(default_factory=Future)
    began_at: float = field(default_factory=monotonic)


class Crew:
    """Looks at resources, each in a thread of its own that closes the connections it used."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._looking: list[RunningCheck] = []

    def __len__(self) -> int:
        return len(self._looking)

    @property
    def leases(self) -> list[CheckLease]:
        """The leases of those that are being looked at."""
        return [check.lease for check in self._looking]

    def begin(self, lease: CheckLease) -> None:
        """Have the leased resource looked at; raises LeaseLost if its row has been deleted."""
        check = RunningCheck(lease)
        self._looking.append(check)
        try:
            resource = lease.resource
        except LeaseLost:
            self._looking.remove(check)
            raise
        background.start("check", lambda: check.finding.set_result(_find(self._checker, resource)))

    def finished(self) -> Iterator[tuple[CheckLease, Finding]]:
        """Wait a moment, and return those that have been looked at since."""
        wait([check.finding for check in self._looking], timeout=NAP, return_when=FIRST_COMPLETED)
        for check in tuple(self._looking):
            if check.finding.done():
                self._looking.remove(check)
                yield check.lease, check.finding.result()
            elif monotonic() > check.began_at + self._checker.timeout + GRACE:
                self._looking.remove(check)
                yield check.lease, Finding(Verdict.UNKNOWN, why=say("checker_stuck"))

    def wait(self) -> None:
        """Wait until nobody looks at anything any more, or should have ended: an interruption stops no thread."""
        ends_at = monotonic() + self._checker.timeout + GRACE
        while self._looking and monotonic() < ends_at:
            if not wait([check.finding for check in self._looking], timeout=NAP).not_done:
                return


def _find(checker: Checker, resource: Any) -> Finding:
    try:
        finding = checker.check(resource)
        took = None if finding.seconds is None else options.seconds("seconds", finding.seconds)
        return Finding(Verdict(finding.verdict), took, one_line(finding.why))
    except Exception as error:  # noqa: BLE001 (a checker of the project's own; its words may carry secrets)
        logger.warning("%s failed: %s", type(checker).__name__, type(error).__name__)
        return Finding(Verdict.UNKNOWN, why=say("checker_failed", error=type(error).__name__))


def one_line(text: str) -> str:
    """Return ``text`` as one line of printable characters that fits into a reason; our own sentences are that."""
    if isinstance(text, Sentence):
        return text
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:MOST_WORDS]
