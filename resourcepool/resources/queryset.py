"""Changes of resources by operators, checks and programs; each change sends signals for the changed rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from django.db import connections, models, transaction

from resourcepool import options
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import DbLater, DbNow
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.leases.short_transactions import run_short_transaction
from resourcepool.leases.skip_locked import change_skipping_locked
from resourcepool.resources.state import MAX_REASON, Status
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.assignment import assign_quietly

CHUNK = 500  # rows in one transaction; for lists of 1,000 MariaDB makes a table, and locks rows in no order
MAX_DURATION = 30 * options.DAY  # seconds: the longest time for which a resource may be put away
RETIRED, DELETED = sentence_for("retired"), sentence_for("deleted_while_held")
BACK_IN_SERVICE = {"in_service": True, "status": Status.IN_SERVICE, "reason": "", "until": None, "strikes": 0}

ChangeRows = Callable[[Any], int]  # makes the change to these rows
Seen = list[tuple[Any, ...]]  # primary key, fence and more of rows as they were read


class ResourceQuerySet(LeaseQuerySet):
    """Filters and changes over resources. Only ``free`` touches a running lease.

    ``actor`` is the operator who does it, for the history; "" for a program. All changes return the number of changed
    rows, and raise BadOption for a wrong reason, name or duration. Rows that another transaction has locked, such as a
    holder's ``guard``, are waited for once, for 3 s; then all others are done, and RowLocked says how many. Inside your
    own transaction your settings decide how long to wait, and the error is the database's own.
    """

    def quarantined(self) -> Self:
        """In quarantine because they were found bad; not those whose lease still runs, which are draining."""
        # The status stays after its end, so that people can see why; the next lease or cool-down does not count.
        is_busy = models.Q(busy_before__gt=DbNow())
        parked = models.Q(in_service=True, holder="") & is_busy
        since_a_lease = models.Q(in_service=False) & (models.Q(holder="") | ~is_busy)
        return self.filter(parked | since_a_lease, status=Status.QUARANTINED, until__gt=DbNow())

    def draining(self) -> Self:
        """Out of service after the lease that still runs."""
        return self.filter(in_service=False).held()

    def drain(self, reason: str, *, duration: object = None, actor: str = "") -> int:
        """Take these out of service; a held one drains: it goes out when its lease ends.

        Args:
            reason: why, one line for people.
            duration: returns to service by itself after so long (seconds or timedelta, up to 30 days); None:
                until ``return_to_service``.
        """
        return self._put_away(EventKind.DRAINED, Status.OUT_OF_SERVICE, reason, duration, actor)

    def reserve(self, name: str, reason: str, *, duration: object = None, actor: str = "") -> int:
        """Keep these for a person: nobody else gets them. A held one is the person's as soon as its lease ends.

        Args:
            name: of the person.
            reason, duration: see ``drain``.
        """
        name = options.text("name", name, most=80)
        reason = options.text("reason", reason, most=MAX_REASON - len(name) - 2)
        return self._put_away(EventKind.RESERVED, Status.RESERVED, f"{name}: {reason}", duration, actor)

    def retire(self, reason: str = RETIRED, *, actor: str = "") -> int:
        """Take these out of service for good; their rows stay."""
        return self._put_away(EventKind.DRAINED, Status.RETIRED, reason, None, actor)

    def quarantine(self, reason: str, duration: object, *, actor: str = "") -> int:
        """Quarantine these for so long (seconds or timedelta, up to 30 days); then they can be leased again.

        A held one is not taken from its holder: it drains, is in quarantine after its lease, and returns to service
        when the time is over. One that is already in quarantine gets the new reason and end.
        """
        reason, seconds = _reason(reason), _span(duration)
        put_away = partial(_update, **_quarantined(reason, seconds))
        those = models.Q(in_service=True) | models.Q(status=Status.QUARANTINED)
        return self._change(EventKind.QUARANTINED, self.filter(those), put_away, reason, actor)

    def return_to_service(self, *, reason: str = "", actor: str = "") -> int:
        """Return these to service, and reset their strikes; ends a quarantine.

        Args:
            reason: why, one line for the history; "": no reason.
        """
        reason = _reason(reason) if reason else ""
        away = self.filter(models.Q(in_service=False) | ~models.Q(status=Status.IN_SERVICE))
        return self._change(EventKind.RETURNED, away, _return, reason, actor)

    def return_due(self) -> int:
        """Return resources to service whose time out of service is over."""
        due = self.filter(
            in_service=False,
            status__in=(Status.OUT_OF_SERVICE, Status.QUARANTINED, Status.RESERVED),
            until__lte=DbNow(),
        )
        back = partial(_update, in_service=True, status=Status.IN_SERVICE, reason="", until=None)
        # Locked rows are returned next time: a waiter for a free one must not wait for a transaction.
        return self._change(EventKind.RETURNED, due, back, "its time was over", "", skip_locked=True)

    def revoke(self, reason: str, *, actor: str = "") -> int:
        """Take the running leases of these away: they are free at once, and the fence goes up.

        The holder is told within one beat of its keeper (a third of its ttl): ``lost`` is set, ``on_lost`` runs, its
        next call raises ``LeaseLost``. Not promised: that it stops using the resource; see ``Lease.guard``.
        """
        reason = _reason(reason)
        self._for_write = True
        using = self.db
        found = retrying(
            connections[using], lambda: list(self.using(using).held().values_list("pk", "fence", "holder"))
        )
        known = {one[0]: one for one in found}
        still = ResourceQuerySet(model=self.model, using=using).held()

        def revoke(pks: Sequence[Any], skip_locked: bool) -> int:
            taken = end_leases(still, [known[pk] for pk in pks], skip_locked=skip_locked)
            for pk, fence, holder in taken:
                emit(RowEvent(EventKind.REVOKED, self.model, using, pk, fence, holder, reason, actor))
            return len(taken)

        return self._all_but_the_locked(list(known), revoke, frees=True)

    def delete(self, *, actor: str = "") -> tuple[int, dict[str, int]]:
        """Delete the free ones and retire the held ones, whose holders are not disturbed.

        Returns the same as Django's own. The history has events for the retired ones.
        """
        deleted: Counter[str] = Counter()
        self._for_write = True  # a replica's view of leases is old
        using = self.db

        def delete(pks: Sequence[Any], skip_locked: bool) -> dict[str, int]:
            rows = ResourceQuerySet(model=self.model, using=using)
            if skip_locked:
                free = rows.filter(pk__in=pks).select_for_update(skip_locked=True)
                pks = list(free.values_list("pk", flat=True))
            rows.filter(pk__in=pks).update(in_service=False)  # from here on nobody can claim them
            held = set(rows.filter(pk__in=pks).held().values_list("pk", flat=True))
            why = (EventKind.DRAINED, Status.RETIRED, DELETED, None, actor)
            rows.filter(pk__in=held)._put_away(*why, skip_locked=skip_locked)
            # By their keys alone: with more conditions MariaDB may read the whole table, and wait for locked rows.
            ours = rows.filter(pk__in=[pk for pk in pks if pk not in held])
            gone: dict[str, int] = super(ResourceQuerySet, ours).delete()[1]
            return gone

        def delete_and_count(pks: Sequence[Any], skip_locked: bool) -> int:
            deleted.update(run_short_transaction(using, partial(delete, pks, skip_locked)))
            return len(pks)

        self._all_but_the_locked(_keys(self.using(using)), delete_and_count)
        return deleted.total(), dict(deleted)

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _put_away(
        self,
        what: EventKind,
        status: Status,
        reason: str,
        duration: object,
        actor: str,
        *,
        skip_locked: bool = False,
    ) -> int:
        reason = _reason(reason)
        until = None if duration is None else DbLater(_span(duration))
        change = partial(_update, in_service=False, status=status, reason=reason, until=until)
        return self._change(what, self, change, reason, actor, skip_locked=skip_locked)

    def _change(
        self,
        what: EventKind,
        rows: Self,
        change: ChangeRows,
        reason: str,
        actor: str,
        *,
        skip_locked: bool = False,
    ) -> int:
        """Make the change to ``rows``, send events for the changed rows, and return their number.

        Args:
            skips: leaves out locked rows, where the database can tell.
        """
        rows._for_write = True
        using = rows.db
        make_event = partial(RowEvent, what, self.model, using, reason=reason, actor=actor)
        always = skip_locked and connections[using].features.has_select_for_update_skip_locked

        def work(pks: Sequence[Any], skip_locked: bool) -> int:
            chosen = rows.using(using).filter(pk__in=pks)
            return run_short_transaction(
                using, partial(_change_and_emit, chosen, change, make_event, skip_locked or always)
            )

        return rows._all_but_the_locked(_keys(rows.using(using)), work, frees=what is EventKind.RETURNED)

    def _all_but_the_locked(
        self, pks: Sequence[Any], change: Callable[[Sequence[Any], bool], int], *, frees: bool = False
    ) -> int:
        """Apply ``change`` to ``CHUNK`` rows at a time; rows that it frees go to waiters, even if some were locked."""
        chunks = (pks[start : start + CHUNK] for start in range(0, len(pks), CHUNK))
        done = 0
        try:
            done = change_skipping_locked(self.db, self.model, chunks, change)
        except RowLocked as error:
            done = error.done
            raise
        finally:
            if frees and done:
                transaction.on_commit(partial(assign_quietly, self.db, self.model), using=self.db)
        return done


def end_leases(rows: LeaseQuerySet, seen: Seen, *, skip_locked: bool) -> Seen:
    """End the leases in ``seen`` whose rows are still under the same fence; return these.

    Args:
        rows: those of the model that may be changed.
        skips: leaves out locked rows.

    Raises:
        RowLocked, DatabaseUnavailable: see ``run_short_transaction``.
    """
    pks = [pk for pk, *_ in seen]

    def end() -> Seen:
        # Locked, because the next lease's fence may look like that of a row which has just been freed.
        locked = rows.filter(pk__in=pks).select_for_update(skip_locked=skip_locked).order_by("pk")
        now = dict(locked.values_list("pk", "fence"))
        running = [one for one in seen if now.get(one[0]) == one[1]]
        if running:
            held = [(pk, fence) for pk, fence, *_ in running]
            verbs.release_all(connections[rows.db], rows.model, held, 0.0)
        return running

    def settle() -> Seen:
        """Return the rows that were freed before the connection was lost."""
        freed = verbs.rows_of(connections[rows.db], rows.model).filter(pk__in=pks, holder="")
        fences = dict(freed.values_list("pk", "fence"))
        gone = [one for one in seen if fences.get(one[0]) == one[1] + 1]
        if not gone:
            raise Unsettled
        return gone

    return run_short_transaction(rows.db, end, settle=settle)


def _change_and_emit(
    rows: Any, change: ChangeRows, make_event: Callable[..., RowEvent], skip_locked: bool
) -> int:
    """Change the ``rows`` that are still as they were found, and send events for these alone."""
    found = rows.using(rows.db).select_for_update(skip_locked=skip_locked).order_by("pk")
    still = dict(found.values_list("pk", "fence"))  # locked: nobody claims or changes them before the update
    if still:
        # By their keys alone: conditions on the clock may no longer be true.
        change(ResourceQuerySet(model=rows.model, using=rows.db).filter(pk__in=list(still)))
    for pk, fence in still.items():
        emit(make_event(pk=pk, fence=fence))
    return len(still)


def _quarantined(reason: str, seconds: float) -> dict[str, Any]:
    """Return the new values: a held row drains, any other is parked.

    MariaDB and MySQL assign them in this order, and later expressions see the new values. So columns that the others
    read come last.
    """
    is_held = ~models.Q(holder="") & models.Q(busy_before__gt=DbNow())

    def either(held: Any, free: Any) -> models.Case:
        return models.Case(models.When(is_held, then=held), default=free)

    fence, text = models.F("fence"), models.Value
    return {
        "reason": reason,
        "until": DbLater(seconds),
        "in_service": either(text(False), text(True)),
        "status": Status.QUARANTINED,
        "fence": either(fence, fence + 1),
        "holder": either(models.F("holder"), text("")),
        "busy_before": either(models.F("busy_before"), DbLater(seconds)),
    }


def _update(rows: Any, **values: Any) -> int:
    return int(rows.update(**values))


def _return(away: Any) -> int:
    # Not the cool-down of a row whose quarantine ended long ago.
    parked = models.Q(in_service=False) | models.Q(status=Status.QUARANTINED, until__gt=DbNow())
    resting = away.filter(parked, holder="", busy_before__gt=DbNow())
    returned = int(resting.update(**BACK_IN_SERVICE, busy_before=DbNow(), fence=models.F("fence") + 1))
    return returned + int(away.update(**BACK_IN_SERVICE))


def _keys(rows: Any) -> list[Any]:
    return retrying(connections[rows.db], lambda: list(rows.values_list("pk", flat=True)))


def _reason(reason: str) -> str:
    return options.text("reason", reason, most=MAX_REASON)


def _span(duration: object) -> float:
    return options.seconds("duration", duration, most=MAX_DURATION)
