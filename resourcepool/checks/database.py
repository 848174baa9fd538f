"""What is wrong with the databases that leases are kept in: ``manage.py check --database default``."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register
from django.db import connections

from resourcepool.checks.message import message
from resourcepool.safety.routing import used_aliases


@register("resourcepool", Tags.database)
def check_databases(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report what would break a lease on those of these databases that leased models are written to."""
    from resourcepool.safety.diagnosis import diagnose  # here, because most processes start without asking

    used = used_aliases() if databases else []
    return [
        message(problem)
        for alias in databases or ()
        if alias in used
        for problem in diagnose(connections[alias]).problems
    ]
