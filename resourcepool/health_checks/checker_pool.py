"""Checks several resources in parallel threads; their leases stay with the caller's thread."""

import logging
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.db import background
from resourcepool.db.threads.wakeup import POLL
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import LeaseLost
from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.health_checks.lease import CheckLease
from resourcepool.resources.state import Verdict
from resourcepool.text import printable

GRACE = 2.0  # seconds to wait for a check after its timeout
MAX_TEXT = 150

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningCheck:
    """A check that has started."""

    lease: CheckLease
    finding: Future[Finding] = field(default_factory=Future)
    began_at: float = field(default_factory=monotonic)


class CheckerPool:
    """Checks resources, each in its own thread, whose connections are closed."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.running: list[RunningCheck] = []

    def begin(self, lease: CheckLease) -> None:
        """Start to check the leased resource; raises LeaseLost if its row was deleted."""
        check = RunningCheck(lease)
        self.running.append(check)  # at first, so that an interruption releases it
        try:
            resource = lease.resource
        except LeaseLost:
            self.running.remove(check)
            raise
        background.start("check", lambda: check.finding.set_result(_run(self._checker, resource)))

    def finished(self) -> Iterator[tuple[CheckLease, Finding]]:
        """Wait briefly, and yield the checks that have ended."""
        wait([check.finding for check in self.running], timeout=POLL, return_when=FIRST_COMPLETED)
        for check in tuple(self.running):
            if check.finding.done():
                self.running.remove(check)
                yield check.lease, check.finding.result()
            elif monotonic() > check.began_at + self._checker.timeout + GRACE:
                self.running.remove(check)
                yield check.lease, Finding(Verdict.UNKNOWN, why=sentence_for("checker_stuck"))

    def wait(self) -> None:
        """Wait until all checks have ended or are overdue; their threads cannot be stopped."""
        ends_at = monotonic() + self._checker.timeout + GRACE
        while self.running and monotonic() < ends_at:
            if not wait([check.finding for check in self.running], timeout=POLL).not_done:
                return


def _run(checker: Checker, resource: Any) -> Finding:
    try:
        finding = checker.check(resource)
        seconds = None if finding.seconds is None else options.seconds("seconds", finding.seconds)
        return Finding(Verdict(finding.verdict), seconds, one_line(finding.why))
    except Exception as error:  # noqa: BLE001 (a checker of the project may raise anything; the text may contain secrets)
        logger.warning("%s failed: %s", type(checker).__name__, type(error).__name__)
        return Finding(Verdict.UNKNOWN, why=sentence_for("checker_failed", error=type(error).__name__))


def one_line(text: str) -> str:
    """Return ``text`` as one printable line that fits into a reason; a Sentence already is one."""
    if isinstance(text, Sentence):
        return text
    return " ".join(printable(text, " ").split())[:MAX_TEXT]
