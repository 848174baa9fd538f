"""A checker that says what the test says."""

from collections.abc import Callable
from typing import Any

from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.resources.state import Verdict

GOOD = Finding(Verdict.OK, 0.1)
BAD = Finding(Verdict.BAD, 0.2, "refused the connection")
UNKNOWN = Finding(Verdict.UNKNOWN, None, "the answer was 503")


class ScriptedChecker(Checker):
    """Finds what ``finds`` has for the row's key, else that it is good; ``meanwhile`` is called with each row."""

    finds: dict[Any, Finding] = {}
    meanwhile: Callable[[Any], object] = staticmethod(lambda _: None)

    @classmethod
    def forget(cls) -> None:
        cls.finds, cls.meanwhile = {}, staticmethod(lambda _: None)

    def check(self, resource: Any) -> Finding:
        type(self).meanwhile(resource)
        return self.finds.get(resource.pk, GOOD)
