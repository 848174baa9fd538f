"""The base class of checkers."""

from dataclasses import dataclass
from typing import Any

from resourcepool.resources.state import Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        verdict: ok; bad: the resource is at fault; unknown: the fault may be elsewhere.
        seconds: the response time; None: unknown.
        why: the reason, one line for people; without secrets.
    """

    verdict: Verdict
    seconds: float | None = None
    why: str = ""


class Checker:
    """Checks whether resources are usable. One object checks all resources of a run, several in parallel threads.

    Example::

        class PhoneChecker(Checker):
            def __init__(self, *, number: str, **general):    # from RESOURCEPOOL["CHECKS"]["app.Phone"]
                super().__init__(**general)
                self.number = number

            def check(self, phone):
                if dial(phone, self.number, timeout=self.timeout):
                    return Finding(Verdict.OK)
                return Finding(Verdict.BAD, why="no dial tone")

    An exception from ``check`` counts as unknown. Not promised: that a check which exceeds ``timeout`` is stopped; the
    resource is released soon after the timeout, although the check goes on.
    """

    def __init__(self, *, timeout: float = 10.0) -> None:
        """Take the settings; raises BadOption for a wrong one. No I/O, because ``manage.py check`` calls it.

        Args:
            timeout: the maximum duration of one check, in seconds.
        """
        self.timeout = timeout

    def prepare(self) -> None:
        """Prepare a run; raises CheckerBroken if no resource can be checked."""

    def check(self, resource: Any) -> Finding:
        """Return whether this resource is usable. It is leased during the check."""
        raise NotImplementedError(f"{type(self).__name__} must define check()")
