"""The keeper: renews all leases of this process, and notices losses.

One daemon thread for each database with leases renews them, on its own connection with short timeouts. Another thread
only watches the clock, so that a hanging database cannot delay the news of a loss. All start on first use, and start
again after a fork.
"""

import logging
import math
import os
from collections import defaultdict
from functools import partial
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.background import log_errors
from resourcepool.database.clock import monotonic
from resourcepool.database.loop import PAUSE_AFTER_FAILURE, Loop
from resourcepool.database.retry import retrying
from resourcepool.database.wakeup import Wakeup
from resourcepool.events import sentence_for
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.leaks import forgotten
from resourcepool.leases.renewable import Renewable
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Trust
from resourcepool.threads.daemon import Daemon

logger = logging.getLogger(__name__)

IDLE = 1.0  # seconds without leases, after which a connection is closed


class Keeper:
    """All leases of this process, and the threads that renew and watch them.

    It has no lock, because a signal handler that acquires or raises might leave a thread waiting for it: the state is a
    dictionary, read and changed by one step of the interpreter each.
    """

    def __init__(self) -> None:
        self._kept: dict[Renewable, None] = {}
        self._unrenewed: dict[Renewable, None] = {}  # not renewed any more, and perhaps not given back yet
        self._beats: dict[str, Loop] = {}
        self._watch = Wakeup()
        self._watcher = Daemon("watch", self._watch_loop)
        self._releases_at_exit = False
        self._unavailable: set[str] = set()  # databases that did not answer: one warning each is enough

    def keep(self, lease: Renewable) -> None:
        """Renew and watch ``lease`` from now on."""
        self._kept[lease] = None
        beat = self._beats.get(lease.using)
        # Checked here, because that takes a fraction of the calls that would check it again.
        if beat is None or not (beat.thread.is_running and self._watcher.is_running):
            beat = self._start(lease.using)
        trust = lease.trust
        if trust.due_at < beat.wakeup.next_at:
            beat.wakeup.bring_forward(trust.due_at)
        if trust.until < self._watch.next_at:
            self._watch.bring_forward(trust.until)

    def stop_renewing(self, lease: Renewable) -> None:
        """Never renew ``lease`` again; unless it is given back before, the end of this process releases it."""
        if lease in self._kept:
            self._unrenewed[lease] = None
            self._kept.pop(lease, None)

    def remove(self, lease: Renewable) -> None:
        """Stop watching ``lease``. A renewal under way finds another fence, or nobody to tell."""
        self._kept.pop(lease, None)
        self._unrenewed.pop(lease, None)

    def leases(self) -> list[Renewable]:
        """Return all leases that this process holds now, without those whose ``stop_renewing`` was interrupted."""
        return [lease for lease in list(self._kept) if lease not in self._unrenewed]

    def unreleased(self) -> list[Renewable]:
        """Return all leases that this process holds now, or failed to give up and might still hold."""
        return list({**self._kept, **self._unrenewed})

    def holds(self, model: Model, using: str, pk: Any, fence: int) -> bool:
        """Tell whether one of the leases that are not given back is this grant."""
        return any(
            (lease.pk, lease.fence, lease.using) == (pk, fence, using)
            and lease.model._meta.concrete_model is model._meta.concrete_model
            for lease in self.unreleased()
        )

    def is_renewing(self, lease: Renewable) -> bool:
        """Tell whether ``lease`` is being renewed."""
        return lease in self._kept and lease not in self._unrenewed

    def is_alive(self) -> bool:
        """Tell whether all threads run (also true before the first lease)."""
        return self._watcher.is_healthy and all(beat.is_alive for beat in list(self._beats.values()))

    def release_at_exit(self) -> None:
        """Release the remaining leases when this process ends in an orderly way."""
        if not self._releases_at_exit:
            shutdown.at_exit(0, lambda: shutdown.release_everything(self.unreleased()))
            self._releases_at_exit = True

    def _start(self, using: str) -> Loop:
        self.release_at_exit()
        beat = self._beat(using)
        beat.start()
        self._watcher.ensure_started()
        return beat

    def _beat(self, using: str) -> Loop:
        if (beat := self._beats.get(using)) is None:
            turn, has_work = partial(self._beat_once, using), partial(self._keeps_on, using)
            new = Loop(f"beat-{using}", Wakeup(), turn, has_work, idle_timeout=IDLE)
            beat = self._beats.setdefault(using, new)
        return beat

    def _kept_on(self, using: str) -> list[Renewable]:
        return [lease for lease in self.leases() if lease.using == using]

    def _keeps_on(self, using: str) -> bool:
        return any(lease.using == using for lease in self.leases())

    def _beat_once(self, using: str) -> float:
        """Renew the due leases on this database; return when to look again."""
        self._report_leaks(using)
        now, due, wake_at = monotonic(), defaultdict(list), math.inf
        for lease in self._kept_on(using):
            if lease.is_in_transaction or lease.is_ending or not _may_renew(lease):
                wake_at = min(wake_at, now + lease.terms.ttl / 10)
            elif lease.trust.due_at <= now + lease.trust.valid_for / 12:  # leases due soon are renewed along
                due[lease.model].append(lease)
            else:
                wake_at = min(wake_at, lease.trust.due_at)
        for leases in due.values():
            for start in range(0, len(leases), verbs.BATCH):
                wake_at = min(wake_at, self._renew(using, leases[start : start + verbs.BATCH]))
        return wake_at

    def _report_leaks(self, using: str) -> None:
        for lease in forgotten(self._kept_on(using)):
            if lease.is_delivered:
                _report_leak(lease, sentence_for("no_handle"))
            else:  # the thread that should have got it was interrupted
                self.stop_renewing(lease)
        for lease in [lease for lease in self._kept_on(using) if lease.is_orphaned]:
            if lease.is_delivered:  # somebody else still has the handle, and is told
                _lose(lease, sentence_for("owner_ended"), lease.trust)
            else:
                self.stop_renewing(lease)
        now = monotonic()
        for lease in self._kept_on(using):
            if lease.leaks_at <= now:
                _report_leak(lease, sentence_for("held_long", seconds=lease.terms.leak_after))

    def _renew(self, using: str, batch: list[Renewable]) -> float:
        """Renew one batch, whatever happens to the other batches; return when to look again."""
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
        return min(lease.trust.due_at for lease in batch) if renewed_all else monotonic() + PAUSE_AFTER_FAILURE

    def _watch_loop(self) -> None:
        while True:
            self._watch.reset()
            try:
                wake_at = self._watch_once()
            except Exception:
                logger.exception("the keeper could not tell of a loss; it tries again")
                wake_at = monotonic() + PAUSE_AFTER_FAILURE
            self._watch.sleep_until(wake_at)

    def _watch_once(self) -> float:
        """Mark leases that are no longer trusted as lost; return when to look again."""
        now, wake_at = monotonic(), math.inf
        for lease in self.unreleased():
            trust = lease.trust
            if trust.until > now:
                wake_at = min(wake_at, trust.until)
            elif lease.is_ending:  # the thread that gives it up reports the loss, unless that fails
                wake_at = min(wake_at, now + PAUSE_AFTER_FAILURE)
            elif self.is_renewing(lease):
                _lose(lease, trust.why_over(now), trust)
            else:
                self.remove(lease)
        return wake_at


def renew_together(using: str, leases: list[Renewable]) -> bool:
    """Renew leases of one model in one statement, each for its own ttl, and mark lost ones.

    Returns:
        False: other transactions have some rows locked; those leases were left for the next beat.

    Raises:
        DatabaseUnavailable: nothing is known about any of them.
    """
    model, connection = leases[0].model, connections[using]
    held = [_Held(lease.trust, lease, lease.pk, lease.fence) for lease in leases]
    if len({one.pk for one in held}) < len(held):  # an older handle of the same row is among them
        held = _tell_the_lost(using, held)
    sent_at, renewed = _send(connection, model, held)
    complete = renewed is not None
    if renewed is None:  # one locked row must not cost this process all the others
        unlocked = verbs.unlocked(connection, model, [one.pk for one in held])
        held = [one for one in held if one.pk in unlocked]
        sent_at, renewed = _send(connection, model, held)
    if renewed is None:
        return False
    if renewed < len(_grants(held)):
        held = _tell_the_lost(using, held)
    if renewed != len(_grants(held)):
        return False  # it is not known which of them were renewed
    for one in held:
        one.trust.confirm(sent_at)
    return complete


class _Held(NamedTuple):
    """One grant in a batch; meanwhile ``fix()`` may move its handle to another row."""

    trust: Trust  # read first: if ``fix()`` runs in between, the renewal confirms the old window
    lease: Renewable
    pk: Any
    fence: int


def _tell_the_lost(using: str, held: list[_Held]) -> list[_Held]:
    """Mark leases whose fence changed as lost; return the rest."""
    if not held:
        return []
    model, connection, pks = held[0].lease.model, connections[using], [one.pk for one in held]
    live = retrying(connection, lambda: verbs.live_fences(connection, model, pks))
    for one in held:
        if live.get(one.pk) != one.fence and keeper.is_renewing(one.lease):
            _lose(one.lease, verbs.TAKEN, one.trust)
    return [one for one in held if live.get(one.pk) == one.fence]


def _may_renew(lease: Renewable) -> bool:
    """Whether the holder's ``renew_while`` agrees; an exception counts as no."""
    with log_errors("cannot tell whether to renew %s; not renewed yet", lease):
        return lease.terms.may_renew
    return False


def _lose(lease: Renewable, reason: str, trust: Trust) -> None:
    with log_errors("not everybody could be told that %s is lost", lease):
        lease.lose(reason, trust)


def _report_leak(lease: Renewable, why: str) -> None:
    with log_errors("not everybody could be told that %s may be leaked", lease):
        lease.report_leak(why)


def _grants(held: list[_Held]) -> set[tuple[object, int]]:
    return {(one.pk, one.fence) for one in held}


def _send(connection: BaseDatabaseWrapper, model: Model, held: list[_Held]) -> tuple[float, int | None]:
    sent_at, ttls = monotonic(), dict[tuple[Any, int], float]()
    for one in held:  # each handle of a grant trusts its own ttl, so the longest is written
        grant = one.pk, one.fence
        ttls[grant] = max(one.trust.next_ttl(sent_at), ttls.get(grant, 0.0))
    if not ttls:
        return sent_at, 0
    return sent_at, verbs.renew_unless_locked(connection, model, list(ttls), list(ttls.values()))


def _after_fork() -> None:
    keeper.__init__()  # type: ignore[misc]  # the parent's leases, locks and threads are not the child's
    dialect.drop_inherited_connections()


keeper = Keeper()
os.register_at_fork(before=dialect.close_files, after_in_child=_after_fork)
