"""Checks proxies by the scripted checker, and makes some that are in quarantine."""

from typing import Any

from resourcepool.dialect import DbLater
from resourcepool.events import say
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from resourcepool.validity.check import Wishes, check
from resourcepool.validity.outcome import Checked
from tests.app.rows import new


def checked(*rows: Any, **wishes: Any) -> dict[Any, Checked]:
    found: list[Checked] = []
    check(Proxy, [row.pk for row in rows] or None, wishes=Wishes(**wishes), tell=found.append)
    assert not keeper.kept(), "every lease was given back"
    return {one.pk: one for one in found}


def parked(reason: str = say("check", why=say("connection_refused")), **fields: Any) -> Any:
    away = {"status": Status.QUARANTINED, "reason": reason, "until": DbLater(1_000), "strikes": 3}
    return new(Proxy, busy_before=DbLater(1_000), fence=7, **{**away, **fields})


def checked_while_held() -> dict[Any, Checked]:
    found: list[Checked] = []
    check(Proxy, tell=found.append)
    return {one.pk: one for one in found}
