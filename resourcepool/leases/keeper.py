"""The keeper: renews all leases of this process and notices losses.

The background thread of each database renews its leases before all other work. Another thread only watches the clock,
so a hanging database cannot delay the report of a loss. All start on first use, and start again after a fork.

A lease whose handle no code refers to is leaked. As in HikariCP, it is only reported, with the line that acquired it,
and still renewed, because the code that dropped the handle may still use the resource. The keeper needs the handle, for
``on_lost`` and for the release at exit, so a ``weakref`` does not work: it counts references, once per round. A
finalizer does not work either, because Python drops Ctrl-C in one.
"""

import logging
import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.background import PAUSE_AFTER_FAILURE, RENEWALS, Routine, background_thread, log_errors
from resourcepool.db.rows import batched
from resourcepool.db.threads import Daemon, Wakeup, per_process
from resourcepool.db.timeouts import watchdog
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.models import Model
from resourcepool.leases.renewal import lose, renew_together
from resourcepool.leases.terms import MIN_TTL, Trust

if TYPE_CHECKING:
    from resourcepool.leases.lease import Lease

logger = logging.getLogger(__name__)


class Keeper:
    """All leases of this process (each a ``Lease``, whose module imports this one), and the threads that renew them.

    Lock-free, so that a signal handler cannot deadlock it: every access is one atomic operation of a dict.
    """

    def __init__(self) -> None:
        self._kept: dict[Lease, None] = {}
        self._routines: dict[str, Routine] = {}
        self._watch = Wakeup()
        self._watcher = Daemon("watch", self._watch_loop)
        self._releases_at_exit = False
        self._unavailable: set[str] = set()  # databases that did not answer: one warning each is enough

    def keep(self, lease: "Lease") -> None:
        """Renew and watch ``lease`` from now on."""
        self._kept[lease] = None
        routine = self._routines.get(lease.using)
        # Checked inline, because calls would cost several times as much.
        if routine is None or not (routine.owner.daemon.is_running and self._watcher.is_running):
            routine = self._start(lease.using)
        trust = lease._trust
        if trust.due_at < routine.next_at:
            routine.bring_forward(trust.due_at)
        if routine.owner.is_lent:
            watchdog.check_by(trust.due_at)
        if trust.until < self._watch.next_at:
            self._watch.bring_forward(trust.until)

    def remove(self, lease: "Lease") -> None:
        """Stop renewing and watching ``lease``."""
        self._kept.pop(lease, None)

    def leases(self) -> "list[Lease]":
        """Return all leases that this process renews."""
        return [lease for lease in list(self._kept) if lease._is_renewed]

    def unreleased(self) -> "list[Lease]":
        """Return all leases that this process holds, including those whose release failed."""
        return list(self._kept)

    def holds(self, model: Model, using: str, pk: Any, fence: int) -> bool:
        """Whether one of the ``unreleased`` leases is this grant."""
        grant = (pk, fence, using, model._meta.concrete_model)
        return any(
            (lease.pk, lease.fence, lease.using, lease.model._meta.concrete_model) == grant
            for lease in self.unreleased()
        )

    def is_renewing(self, lease: "Lease") -> bool:
        """Whether ``lease`` is being renewed."""
        return lease in self._kept and lease._is_renewed

    def is_alive(self) -> bool:
        """Whether all threads run; true before the first lease, too."""
        daemons = [self._watcher, *(routine.owner.daemon for routine in list(self._routines.values()))]
        return all(daemon.is_healthy for daemon in daemons)

    def release_at_exit(self) -> None:
        """Release the remaining leases when this process exits normally."""
        if not self._releases_at_exit:
            shutdown.at_exit(0, lambda: shutdown.release_everything(self.unreleased()))
            self._releases_at_exit = True

    def _start(self, using: str) -> Routine:
        self.release_at_exit()
        thread = background_thread(using)
        self._routines[using] = routine = thread.routine(
            RENEWALS,
            partial(self._renew_due_leases, using),
            lambda: bool(self._kept_on(using)),
            needed_by=lambda now: must_begin_by(now, (lease._trust for lease in self._kept_on(using))),
        )
        thread.daemon.ensure_started()
        self._watcher.ensure_started()
        return routine

    def _kept_on(self, using: str) -> "list[Lease]":
        return [lease for lease in self.leases() if lease.using == using]

    def _renew_due_leases(self, using: str) -> float:
        """Renew the due leases on this database; return when to run again."""
        self._report_leaks(using)
        now, due, wake_at = monotonic(), defaultdict(list), math.inf
        for lease in self._kept_on(using):
            if lease._terms.is_renewed_by_holder:
                continue
            if lease._is_in_transaction or lease._state.is_ending:
                wake_at = min(wake_at, now + lease._terms.ttl / 10)
            elif lease._trust.due_at <= now + lease._trust.valid_for / 12:  # leases due soon are renewed along
                due[lease.model].append(lease)
            else:
                wake_at = min(wake_at, lease._trust.due_at)
        for leases in due.values():
            for batch in batched(leases, verbs.BATCH):
                wake_at = min(wake_at, self._renew(using, batch))
        return wake_at

    def _report_leaks(self, using: str) -> None:
        for lease in unreferenced(self._kept_on(using)):
            if lease._is_delivered:
                _report_leak(lease, sentence_for("no_handle"))
            else:  # the thread that acquired it was interrupted
                lease._is_renewed = False
        for lease in [lease for lease in self._kept_on(using) if lease._is_orphaned]:
            if lease._is_delivered:  # another thread may still use the handle, so report the loss
                lose(lease, sentence_for("owner_ended"), lease._trust)
            else:
                lease._is_renewed = False
        now = monotonic()
        for lease in self._kept_on(using):
            after = lease._terms.leak_after
            if after is not None and not lease._is_leak_reported and lease._trust.granted_at + after <= now:
                _report_leak(lease, sentence_for("held_long", seconds=after))

    def _renew(self, using: str, batch: "list[Lease]") -> float:
        """Renew one batch independently of the others; return when to run again."""
        try:
            renewed_all = renew_together(using, batch)
        except DatabaseUnavailable as error:
            level = logging.DEBUG if using in self._unavailable else logging.WARNING
            logger.log(level, "%s; %d leases not renewed yet, trying again", error, len(batch))
            self._unavailable.add(using)
            renewed_all = False
        except Exception:
            logger.exception(
                "%d leases of %s not renewed, trying again", len(batch), batch[0].model._meta.label
            )
            renewed_all = False
        else:
            self._unavailable.discard(using)
        return min(lease._trust.due_at for lease in batch) if renewed_all else monotonic() + PAUSE_AFTER_FAILURE

    def _watch_loop(self) -> None:
        while True:
            self._watch.reset()
            try:
                wake_at = self._watch_once()
            except Exception:
                logger.exception("the keeper could not report a loss; trying again")
                wake_at = monotonic() + PAUSE_AFTER_FAILURE
            self._watch.sleep_until(wake_at)

    def _watch_once(self) -> float:
        """Mark leases as lost whose trust window is over; return when to run again."""
        now, wake_at = monotonic(), math.inf
        for lease in self.unreleased():
            trust = lease._trust
            if trust.until > now:
                wake_at = min(wake_at, trust.until)
            elif lease._state.is_ending:  # the releasing thread reports the loss, unless it fails
                wake_at = min(wake_at, now + PAUSE_AFTER_FAILURE)
            elif lease._is_renewed:
                lose(lease, trust.end_reason(now), trust)
            else:
                self.remove(lease)
        return wake_at


def unreferenced(leases: "list[Lease]") -> "list[Lease]":
    """Return the leases that nothing refers to but a dict and this list of its keys."""
    return [lease for lease, count in zip(leases, _references(leases), strict=True) if count <= _MIN_REFERENCES]


def _references(leases: list[Any]) -> list[int]:
    return [sys.getrefcount(lease) for lease in leases]


_alone = {object(): None}
(_MIN_REFERENCES,) = _references(list(_alone))  # of an object that only a dict and a list of its keys refer to


def must_begin_by(now: float, trusts: Iterable[Trust]) -> float:
    """Return when the thread must renew again: at half of the time between the due renewal (or ``now``) and a loss.

    A lease that is about to be lost leaves other work ``MIN_TTL / 2``, enough for a server that answers.
    """
    moments = [(max(now, trust.due_at) + trust.until) / 2 for trust in trusts if trust.until > now]
    return max(now + MIN_TTL / 2, min(moments, default=math.inf))


def _report_leak(lease: "Lease", why: str) -> None:
    with log_errors("could not report to every receiver that %s may be leaked", lease):
        lease._report_leak(why)


keeper = per_process(Keeper)
os.register_at_fork(before=dialect.close_files, after_in_child=dialect.drop_inherited_connections)
