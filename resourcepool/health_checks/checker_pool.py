"""Checks several resources at once in threads; leases stay with the caller's thread."""

import logging
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from resourcepool import options
from resourcepool.database import background
from resourcepool.database.clock import monotonic
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import LeaseLost
from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.health_checks.lease import CheckLease
from resourcepool.resources.state import Verdict
from resourcepool.threads.interruptible_sleep import POLL

GRACE = 2.0  # seconds beyond its timeout for which a check is waited for
MAX_TEXT = 150

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningCheck:
    """A check that has begun."""

    lease: CheckLease
    finding: Future[Finding] = field(default_factory=Future)
    began_at: float = field(default_factory=monotonic)


class CheckerPool:
    """Checks resources, each in its own thread, which closes its connections."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.running: list[RunningCheck] = []

    def begin(self, lease: CheckLease) -> None:
        """Begin to check the leased resource; raises LeaseLost if its row has been deleted."""
        check = RunningCheck(lease)
        self.running.append(check)  # first, so that it is given back after an interruption
        try:
            resource = lease.resource
        except LeaseLost:
            self.running.remove(check)
            raise
        background.start("check", lambda: check.finding.set_result(_find(self._checker, resource)))

    def finished(self) -> Iterator[tuple[CheckLease, Finding]]:
        """Wait a moment, and yield the checks that have ended since."""
        wait([check.finding for check in self.running], timeout=POLL, return_when=FIRST_COMPLETED)
        for check in tuple(self.running):
            if check.finding.done():
                self.running.remove(check)
                yield check.lease, check.finding.result()
            elif monotonic() > check.began_at + self._checker.timeout + GRACE:
                self.running.remove(check)
                yield check.lease, Finding(Verdict.UNKNOWN, why=sentence_for("checker_stuck"))

    def wait(self) -> None:
        """Wait until all checks have ended or are overdue: an interruption stops no thread."""
        ends_at = monotonic() + self._checker.timeout + GRACE
        while self.running and monotonic() < ends_at:
            if not wait([check.finding for check in self.running], timeout=POLL).not_done:
                return


def _find(checker: Checker, resource: Any) -> Finding:
    try:
        finding = checker.check(resource)
        took = None if finding.seconds is None else options.seconds("seconds", finding.seconds)
        return Finding(Verdict(finding.verdict), took, one_line(finding.why))
    except Exception as error:  # noqa: BLE001 (from a checker of the project; its text may contain secrets)
        logger.warning("%s failed: %s", type(checker).__name__, type(error).__name__)
        return Finding(Verdict.UNKNOWN, why=sentence_for("checker_failed", error=type(error).__name__))


def one_line(text: str) -> str:
    """Return ``text`` as one printable line that fits into a reason; a Sentence is one already."""
    if isinstance(text, Sentence):
        return text
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:MAX_TEXT]
