"""Checks proxies with the scripted checker, and creates quarantined ones."""

from typing import Any

from resourcepool.db.dialect import DbLater
from resourcepool.events import sentence_for
from resourcepool.health_checks.check import CheckOptions, CheckResult, check
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from tests.app.rows import new


def check_rows(*rows: Any, **options: Any) -> dict[Any, CheckResult]:
    found: list[CheckResult] = []
    check(Proxy, [row.pk for row in rows] or None, options=CheckOptions(**options), on_result=found.append)
    assert not keeper.leases(), "every lease was given back"
    return {one.pk: one for one in found}


def quarantined(
    reason: str = sentence_for("check", why=sentence_for("connection_refused")), **fields: Any
) -> Any:
    away = {"status": Status.QUARANTINED, "reason": reason, "until": DbLater(1_000), "strikes": 3}
    return new(Proxy, busy_before=DbLater(1_000), fence=7, **{**away, **fields})
