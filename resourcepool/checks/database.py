"""What is wrong with the databases that leases are kept in: ``manage.py check --database default``."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections

from resourcepool.safety.problem import Problem
from resourcepool.safety.routing import undecided, used_aliases


@register("resourcepool", Tags.database)
def check_databases(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report what would break a lease on those of these databases that leased models are written to."""
    from resourcepool.safety.diagnosis import diagnose  # here, because most processes start without asking

    used = used_aliases() if databases else []
    asked = [connections[alias] for alias in databases or () if alias in used]
    return [_message(problem) for connection in asked for problem in diagnose(connection).problems]


@register("resourcepool")
def check_routers(**_: Any) -> list[CheckMessage]:
    """Report models whose leases would be decided now here, now there (E008)."""
    return [_message(problem) for problem in undecided()]


def _message(problem: Problem) -> CheckMessage:
    kind = Error if problem.is_error else CheckWarning
    return kind(problem.message, hint=f"{problem.hint} ({problem.link})", obj=problem.about, id=problem.id)
