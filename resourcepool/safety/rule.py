"""A rule looks at one fact about a server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resourcepool.safety.problem import Problem


@dataclass(frozen=True, slots=True)
class Rule:
    """What is wrong with a server when ``is_broken(facts[fact])``; says nothing where there is no such fact.

    Attributes:
        says: what is wrong; {value} is the fact.
        mend: the statement or setting that mends it.
        voids: see Finding.
    """

    code: str
    fact: str
    is_broken: Callable[[Any], bool]
    says: str
    mend: str
    voids: bool = False

    def problem(self, about: str, value: Any) -> Problem:
        """Return what to say about this value."""
        return Problem(self.code, about, self.says.format(value=shown(value)), self.mend, self.voids)


def judge(rules: Sequence[Rule], about: str, facts: Mapping[str, Any]) -> list[Problem]:
    """Return what these rules find wrong with a server."""
    return [
        rule.problem(about, facts[rule.fact])
        for rule in rules
        if rule.fact in facts and rule.is_broken(facts[rule.fact])
    ]


def passed(rules: Sequence[Rule], facts: Mapping[str, Any]) -> list[str]:
    """Return the facts that rules have looked at and found nothing wrong with, as sentences."""
    broken = {rule.fact for rule in rules if rule.fact in facts and rule.is_broken(facts[rule.fact])}
    looked_at = dict.fromkeys(rule.fact for rule in rules if rule.fact in facts)
    return [f"{fact} is {shown(facts[fact])}" for fact in looked_at if fact not in broken]


def shown(value: Any) -> str:
    """Return a fact as people write it."""
    if isinstance(value, tuple):
        return ".".join(str(part) for part in value)
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return f"{value:g}" if isinstance(value, float) else str(value)
