"""The base class of checkers, which find out whether a resource is usable."""

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
    """Looks at one resource at a time. One object looks at all of a run, several at once in threads of their own.

    Example::

        class PhoneChecker(Checker):
            def __init__(self, *, number: str, **general):    # from RESOURCEPOOL["CHECKS"]["app.Phone"]
                super().__init__(**general)
                self.number = number

            def check(self, phone):
                if dial(phone, self.number, timeout=self.timeout):
                    return Finding(Verdict.OK)
                return Finding(Verdict.BAD, why="no dial tone")

    What ``check`` raises counts as unknown. Not promised: that a check which takes longer than ``timeout`` is
    stopped; it is not waited for much longer, and its resource is given back under it.
    """

    def __init__(self, *, timeout: float = 10.0) -> None:
        """Take over the settings; raises BadOption for a wrong one. No I/O: ``manage.py check`` does it, too.

        Args:
            timeout: how long one check may take, in seconds.
        """
        self.timeout = timeout

    def prepare(self) -> None:
        """Called once before a run. Raises CheckerBroken when nothing can be checked."""

    def check(self, resource: Any) -> Finding:
        """Tell whether this one is usable. It is leased; nobody else uses it meanwhile."""
        raise NotImplementedError(f"{type(self).__name__} must define check()")
