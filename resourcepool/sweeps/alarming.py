"""Says once when something begins to be wrong, and once when it is over: as a log line and a signal."""

import json
import logging
from typing import Any

from django.db import connections
from django.utils import translation

from resourcepool.database.retry import retrying
from resourcepool.elections.election import Term
from resourcepool.jobs import Job
from resourcepool.leases import verbs
from resourcepool.signals import alarm_cleared, alarm_raised
from resourcepool.status.alarms import Alarm, Kind, alarms

logger = logging.getLogger("resourcepool.alarms")


def tell_alarms(term: Term) -> int:
    """Tell what has begun and ended since the job with this ``term`` looked last; returns how many there are."""
    connection = connections[term.using]
    row = verbs.rows_of(connection, Job).filter(pk=term.pk)
    known = _read(retrying(connection, row.values_list("memory", flat=True).first) or "")
    with translation.override("en"):  # as all logs, and so that they can be compared with what is known
        found = alarms()
    now = {(alarm.kind.value, alarm.pool): alarm for alarm in found if alarm.kind is not Kind.SWEEP_STALE}
    for alarm in (now[which] for which in now.keys() - known.keys()):
        logger.warning("%s", alarm)
        alarm_raised.send_robust(sender=Alarm, alarm=alarm)
    for kind, pool in known.keys() - now.keys():
        alarm = Alarm(Kind(kind), pool, known[kind, pool])
        logger.info("over: %s", alarm)
        alarm_cleared.send_robust(sender=Alarm, alarm=alarm)
    memory = json.dumps([[*which, alarm.text] for which, alarm in sorted(now.items())])
    retrying(connection, lambda: row.filter(fence=term.fence).update(memory=memory))
    return len(now)


def _read(memory: str) -> dict[tuple[str, str], str]:
    known: list[Any] = json.loads(memory) if memory else []
    return {(kind, pool): text for kind, pool, text in known if kind in list(Kind)}
