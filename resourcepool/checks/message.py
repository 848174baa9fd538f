"""Findings as Django shows them."""

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning

from resourcepool.safety.problem import Problem


def message(problem: Problem) -> CheckMessage:
    """Return ``problem`` as a message of Django's check framework."""
    kind = Error if problem.is_error else CheckWarning
    return kind(problem.message, hint=f"{problem.hint} ({problem.link})", obj=problem.about, id=problem.id)
