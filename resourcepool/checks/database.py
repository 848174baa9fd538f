"""Checks of the databases with leases: ``manage.py check --database default``."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register
from django.db import connections

from resourcepool.checks.messages import CheckWarning, Error
from resourcepool.safety.diagnosis import ambiguous_models, used_aliases
from resourcepool.safety.problem import Problem


@register("resourcepool", Tags.database)
def check_databases(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report the problems of those of these databases that have leased models."""
    from resourcepool.safety.diagnosis import diagnose  # here, because most processes start without this check

    used = used_aliases() if databases else []
    leased = [connections[alias] for alias in databases or () if alias in used]
    return [_message(problem) for connection in leased for problem in diagnose(connection).problems]


@register("resourcepool")
def check_routers(**_: Any) -> list[CheckMessage]:
    """Report models that the routers write to several databases (E008)."""
    return [_message(problem) for problem in ambiguous_models()]


def _message(problem: Problem) -> CheckMessage:
    kind = Error if problem.is_error else CheckWarning
    return kind(problem.message, hint=f"{problem.hint} ({problem.link})", obj=problem.about, id=problem.id)
