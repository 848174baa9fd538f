"""How the pools stand and who holds what, for people and for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from resourcepool.events import shown
from resourcepool.leases.lock_holders import Locked
from resourcepool.management.layout import ago, moment, plain, table
from resourcepool.resources.state import State
from resourcepool.status.alarms import Alarm
from resourcepool.status.durations import duration
from resourcepool.status.holders import Holding
from resourcepool.status.jobs import JobStatus
from resourcepool.status.pools import PoolStatus

ALWAYS = (State.FREE, State.LEASED, State.COOLING, State.DRAINING, State.QUARANTINED, State.OUT)
IF_ANY = (State.RESERVED, State.RETIRED)
HEADS = {State.COOLING: gettext_lazy("cooling"), State.OUT: gettext_lazy("out")}  # where the label is long


def pools_as_text(pools: Sequence[PoolStatus]) -> list[str]:
    """Return a table of the pools; one that cannot be read says why."""
    states = [*ALWAYS, *(state for state in IF_ANY if any(pool.counts[state] for pool in pools))]
    names = [str(HEADS.get(state, state.label)) for state in states]
    numbers = [*names, _("used"), _("waiting"), _("oldest")]
    rows = [_pool(pool, states) for pool in pools if not pool.trouble]
    lines = table([_("pool"), *numbers], rows, numbers=numbers) if rows else []
    # In full: it says what to type.
    return [*lines, *(f"{pool.label}: {plain(shown(pool.trouble), 300)}" for pool in pools if pool.trouble)]


def jobs_as_text(jobs: Mapping[str, JobStatus]) -> list[str]:
    """Return one line for each kind of periodic work."""
    return [f"{plain(gettext(name))}: {_done(job)}" for name, job in jobs.items()] or [
        _("No periodic job has ever run.")
    ]


def holdings_as_text(holdings: Sequence[Holding]) -> list[str]:
    """Return a table of running leases."""
    head = [_("id"), _("resource"), _("holder"), _("host"), _("since"), _("runs out in")]
    return table(head, [_holding(one) for one in holdings], numbers=[_("runs out in")])


def pool_as_json(pool: PoolStatus) -> dict[str, Any]:
    """Return a pool; the keys are documented in docs/commands.md and stay as they are."""
    counts = {state.value: number for state, number in pool.counts.items()}
    worked_out = {"total": pool.total, "utilisation": round(pool.utilisation, 4)}
    return {**asdict(pool), "counts": counts, **worked_out}


def holding_as_json(holding: Holding) -> dict[str, Any]:
    """Return a running lease; see ``pool_as_json``."""
    return {
        "pool": holding.row._meta.label,
        "id": holding.row.pk,
        "resource": str(holding.row),
        "holder": holding.holder,
        "host": holding.host,
        "pid": holding.pid,
        "fence": holding.fence,
        "since": holding.since,
        "held": None if holding.held is None else round(holding.held, 1),
        "expires_in": round(holding.expires_in, 3),
    }


def locked_as_json(one: Locked) -> dict[str, Any]:
    """Return which session has a row locked; its keys are null where this database user may not see it."""
    session = one.session
    return {
        "pool": one.pool,
        "id": one.pk,
        "session": session.number if session else None,
        "client": session.client if session else None,
        "idle": round(session.idle, 1) if session and session.idle is not None else None,
        "ended_by": session.command if session else None,
    }


def alarms_as_text(alarms: Sequence[Alarm]) -> list[str]:
    """Return what is wrong, one line each."""
    return [plain(alarm, 300) for alarm in alarms]


def _pool(pool: PoolStatus, states: Sequence[State]) -> list[str]:
    oldest = duration(pool.oldest_wait) if pool.waiters else "-"
    counts = [f"{pool.counts[state]:,}" for state in states]
    return [pool.label, *counts, f"{pool.utilisation:.0%}", f"{pool.waiters:,}", oldest]


def _holding(one: Holding) -> list[object]:
    where = f"{one.host} pid {one.pid}" if one.pid else one.host or "-"
    return [one.row.pk, one.row, one.holder, where, moment(one.since, one.held), duration(one.expires_in)]


def _done(job: JobStatus) -> str:
    result = plain(shown(job.result), 200)
    if job.failed is not None:
        return _("failed %(ago)s: %(result)s") % {"ago": ago(job.failed), "result": result}
    if job.done is None:
        return _("never done")
    return _("done %(ago)s: %(result)s") % {"ago": ago(job.done), "result": result}
