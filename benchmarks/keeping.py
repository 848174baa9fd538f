"""What it costs to keep many leases in one process."""

import time
from typing import Any

from benchmarks.ours import Ours

BEATS = 2.2  # so many times a third of the ttl
AT_ONCE = 1_000


def cost(leases: int, ttl: float) -> dict[str, Any]:
    """Hold ``leases`` for two beats of the keeper; count its statements and the processor time of this process."""
    from django.db import connection
    from django.db.backends.utils import CursorWrapper

    from resourcepool.models import Proxy

    Ours.prepare("", leases)
    held = [
        lease for _ in range(leases // AT_ONCE) for lease in Proxy.pool.acquire_many(AT_ONCE, ttl=ttl) or ()
    ]
    sent: list[str] = []
    execute = CursorWrapper.execute

    def record(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        sent.append(str(sql)[:60])
        return execute(self, sql, params)

    setattr(CursorWrapper, "execute", record)  # noqa: B010 (the type checker knows it as a method)
    connection.close()
    began, used = time.monotonic(), time.process_time()
    time.sleep(ttl / 3 * BEATS)
    span, busy = time.monotonic() - began, time.process_time() - used
    renewals = sum(sql.startswith("UPDATE") for sql in sent)
    beats = max(1, round(span / (ttl / 3)))
    return {
        "leases": len(held),
        "held_at_the_end": sum(lease.is_held for lease in held),
        "statements_per_beat": renewals / beats,
        "share_of_a_core": busy / span,
        "ttl": ttl,
    }
