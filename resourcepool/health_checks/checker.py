"""The base class of checkers."""

from dataclasses import dataclass
from typing import Any

from resourcepool.resources.state import Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        verdict: ok; bad: the resource's own fault; unknown: the fault may be elsewhere.
        seconds: how long it took to answer; None: not known.
        why: one line for people, without secrets.
    """

    verdict: Verdict
    seconds: float | None = None
    why: str = ""


class Checker:
    """Finds out whether a resource is usable. One object checks all resources of a run, several at once in threads.

    Example::

        class PhoneChecker(Checker):
            def __init__(self, *, number: str, **general):    # from RESOURCEPOOL["CHECKS"]["app.Phone"]
                super().__init__(**general)
                self.number = number

            def check(self, phone):
                if dial(phone, self.number, timeout=self.timeout):
                    return Finding(Verdict.OK)
                return Finding(Verdict.BAD, why="no dial tone")

    An exception from ``check`` counts as unknown. Not promised: that a check which takes longer than ``timeout`` is
    stopped; soon after it, the resource is given back although the check goes on.
    """

    def __init__(self, *, timeout: float = 10.0) -> None:
        """Take the settings; raises BadOption for a wrong one. No I/O: ``manage.py check`` calls it, too.

        Args:
            timeout: how long one check may take, in seconds.
        """
        self.timeout = timeout

    def prepare(self) -> None:
        """Prepare a run; raises CheckerBroken when nothing can be checked."""

    def check(self, resource: Any) -> Finding:
        """Return whether this resource is usable. It is leased: nobody else uses it meanwhile."""
        raise NotImplementedError(f"{type(self).__name__} must define check()")
