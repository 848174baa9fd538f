"""A checker with results set by the test."""

from collections.abc import Callable
from typing import Any

from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.resources.state import Verdict

GOOD = Finding(Verdict.OK, 0.1)
BAD = Finding(Verdict.BAD, 0.2, "refused the connection")
UNKNOWN = Finding(Verdict.UNKNOWN, None, "the answer had status 503")


class ScriptedChecker(Checker):
    """Returns the finding in ``finds`` for the row's key, default: good; calls ``meanwhile`` with each row."""

    finds: dict[Any, Finding] = {}
    meanwhile: Callable[[Any], object] = staticmethod(lambda _: None)

    @classmethod
    def forget(cls) -> None:
        cls.finds, cls.meanwhile = {}, staticmethod(lambda _: None)

    def check(self, resource: Any) -> Finding:
        type(self).meanwhile(resource)
        return self.finds.get(resource.pk, GOOD)
