"""Changes of resources by operators, checks and programs. Each change emits events for the changed rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from django.db import connections, models, transaction

from resourcepool import options
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.rows import batched, for_update
from resourcepool.db.transactions import change_skipping_locked, run_short_transaction
from resourcepool.events import sentence_for
from resourcepool.exceptions import RowLocked
from resourcepool.leases import verbs
from resourcepool.leases.models import LeaseQuerySet
from resourcepool.options import Seconds
from resourcepool.resources.state import MAX_REASON, Status
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.waiting.assignment import assign_quietly

CHUNK = 500  # rows per transaction; MariaDB turns lists of 1,000 into a table, and then locks rows in any order
MAX_DURATION = 30 * options.DAY  # seconds; of a quarantine, a drain or a reservation
RETIRED, DELETED = sentence_for("retired"), sentence_for("deleted_while_held")
BACK_IN_SERVICE = {"in_service": True, "status": Status.IN_SERVICE, "reason": "", "until": None, "strikes": 0}

ChangeRows = Callable[[Any], int]  # changes these rows, returns their number
Seen = list[tuple[Any, ...]]  # (primary key, fence, ..) of rows as read before


class ResourceQuerySet(LeaseQuerySet):
    """Filters and changes of resources. Only ``free`` touches a running lease.

    ``actor`` is the operator, for the history; "" for a program. All changes return the number of changed rows, and
    raise BadOption for a wrong reason, name or duration. If another transaction, such as a holder's ``guard``, has
    locked rows, the change waits for them once, for 3 s; then it changes all others and raises RowLocked with their
    number. Inside your own transaction, your settings decide how long to wait, and the error is the database's own.
    """

    def quarantined(self) -> Self:
        """In quarantine; not those whose lease still runs, which are draining."""
        # The status outlives the quarantine, for people to read: a later lease or cool-down is not a quarantine.
        is_busy = models.Q(busy_before__gt=DbNow())
        without_lease = models.Q(in_service=True, holder="") & is_busy
        after_lease = models.Q(in_service=False) & (models.Q(holder="") | ~is_busy)
        return self.filter(without_lease | after_lease, status=Status.QUARANTINED, until__gt=DbNow())

    def draining(self) -> Self:
        """Going out of service when the running lease ends."""
        return self.filter(in_service=False).held()

    def drain(self, reason: str, *, duration: Seconds | None = None, actor: str = "") -> int:
        """Take these out of service; a held one drains: it goes out when its lease ends.

        Args:
            reason: one line for people.
            duration: time until the automatic return to service (seconds or timedelta, up to 30 days); None: until
                ``return_to_service``.
        """
        return self._take_out(EventKind.DRAINED, Status.OUT_OF_SERVICE, reason, duration, actor)

    def reserve(self, name: str, reason: str, *, duration: Seconds | None = None, actor: str = "") -> int:
        """Reserve these for a person: programs cannot lease them. A held one is reserved when its lease ends.

        Args:
            name: the person.
            reason, duration: see ``drain``.
        """
        name = options.text("name", name, most=80)
        reason = options.text("reason", reason, most=MAX_REASON - len(name) - 2)
        return self._take_out(EventKind.RESERVED, Status.RESERVED, f"{name}: {reason}", duration, actor)

    def retire(self, reason: str = RETIRED, *, actor: str = "") -> int:
        """Take these out of service permanently; their rows stay."""
        return self._take_out(EventKind.DRAINED, Status.RETIRED, reason, None, actor)

    def quarantine(self, reason: str, duration: Seconds, *, actor: str = "") -> int:
        """Quarantine these for ``duration`` (seconds or timedelta, up to 30 days).

        A held one keeps its lease: it drains, is in quarantine after its lease, and returns to service at the end. One
        that is already in quarantine gets the new reason and end.
        """
        reason, seconds = _reason(reason), _duration(duration)
        change = partial(_update, **_quarantined(reason, seconds))
        applicable = models.Q(in_service=True) | models.Q(status=Status.QUARANTINED)
        return self._change(EventKind.QUARANTINED, self.filter(applicable), change, reason, actor)

    def return_to_service(self, *, reason: str = "", actor: str = "") -> int:
        """Return these to service, and reset their strikes; ends a quarantine.

        Args:
            reason: one line for the history; "": no reason.
        """
        reason = _reason(reason) if reason else ""
        out = self.filter(models.Q(in_service=False) | ~models.Q(status=Status.IN_SERVICE))
        return self._change(EventKind.RETURNED, out, _return, reason, actor)

    def return_due(self) -> int:
        """Return resources to service whose time out of service has ended."""
        due = self.filter(
            in_service=False,
            status__in=(Status.OUT_OF_SERVICE, Status.QUARANTINED, Status.RESERVED),
            until__lte=DbNow(),
        )
        change = partial(_update, in_service=True, status=Status.IN_SERVICE, reason="", until=None)
        # Skip locked rows until the next call: waiters must not wait for other transactions.
        return self._change(
            EventKind.RETURNED, due, change, "its time out of service has ended", "", skip_locked=True
        )

    def revoke(self, reason: str, *, actor: str = "") -> int:
        """Revoke the running leases of these: the resources are free at once, and their fences go up.

        Holders notice at the next renewal (within a third of the ttl): ``lost`` is set, ``on_lost`` runs, the next call
        raises ``LeaseLost``. Not promised: that a holder stops using the resource; see ``Lease.guard``.
        """
        reason = _reason(reason)
        self._for_write = True
        using = self.db
        grants = retrying(
            connections[using], lambda: list(self.using(using).held().values_list("pk", "fence", "holder"))
        )
        grant_of = {grant[0]: grant for grant in grants}
        held = ResourceQuerySet(model=self.model, using=using).held()

        def revoke(pks: Sequence[Any], skip_locked: bool) -> int:
            ended = end_leases(held, [grant_of[pk] for pk in pks], skip_locked=skip_locked)
            for pk, fence, holder in ended:
                emit(RowEvent(EventKind.REVOKED, self.model, using, pk, fence, holder, reason, actor))
            return len(ended)

        return self._all_but_the_locked(list(grant_of), revoke, frees=True)

    def delete(self, *, actor: str = "") -> tuple[int, dict[str, int]]:
        """Delete free resources and retire held ones, whose holders are not disturbed.

        Returns the same as Django's ``delete``. Events are emitted for the retired ones.
        """
        deleted: Counter[str] = Counter()
        self._for_write = True  # a replica's rows may be old
        using = self.db

        def delete(pks: Sequence[Any], skip_locked: bool) -> dict[str, int]:
            rows = ResourceQuerySet(model=self.model, using=using)
            if skip_locked:
                free = for_update(rows.filter(pk__in=pks), skip_locked=True)
                pks = list(free.values_list("pk", flat=True))
            rows.filter(pk__in=pks).update(in_service=False)  # from here on they cannot be claimed
            held = set(rows.filter(pk__in=pks).held().values_list("pk", flat=True))
            retire = (EventKind.DRAINED, Status.RETIRED, DELETED, None, actor)
            rows.filter(pk__in=held)._take_out(*retire, skip_locked=skip_locked)
            # Only by key: with more conditions MariaDB may read the whole table, and wait for locked rows.
            not_held = rows.filter(pk__in=[pk for pk in pks if pk not in held])
            counts: dict[str, int] = super(ResourceQuerySet, not_held).delete()[1]
            return counts

        def delete_and_count(pks: Sequence[Any], skip_locked: bool) -> int:
            deleted.update(run_short_transaction(using, partial(delete, pks, skip_locked)))
            return len(pks)

        self._all_but_the_locked(_keys(self.using(using)), delete_and_count)
        return deleted.total(), dict(deleted)

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _take_out(
        self,
        what: EventKind,
        status: Status,
        reason: str,
        duration: Seconds | None,
        actor: str,
        *,
        skip_locked: bool = False,
    ) -> int:
        reason = _reason(reason)
        until = None if duration is None else DbLater(_duration(duration))
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
        """Change ``rows``, emit events for the changed ones, and return their number.

        Args:
            skip_locked: never wait for locked rows, if the database supports that.
        """
        rows._for_write = True
        using = rows.db
        make_event = partial(RowEvent, what, self.model, using, reason=reason, actor=actor)

        def work(pks: Sequence[Any], skips: bool) -> int:
            chosen = rows.using(using).filter(pk__in=pks)
            return run_short_transaction(
                using, partial(_change_and_emit, chosen, change, make_event, skips or skip_locked)
            )

        return rows._all_but_the_locked(_keys(rows.using(using)), work, frees=what is EventKind.RETURNED)

    def _all_but_the_locked(
        self, pks: Sequence[Any], change: Callable[[Sequence[Any], bool], int], *, frees: bool = False
    ) -> int:
        """Apply ``change`` to ``CHUNK`` rows at a time; waiters get freed rows, even if some were locked."""
        done = 0
        try:
            done = change_skipping_locked(self.db, self.model, batched(pks, CHUNK), change)
        except RowLocked as error:
            done = error.done
            raise
        finally:
            if frees and done:
                transaction.on_commit(partial(assign_quietly, self.db, self.model), using=self.db)
        return done


def end_leases(rows: LeaseQuerySet, seen: Seen, *, skip_locked: bool) -> Seen:
    """End the leases in ``seen`` whose rows still have the same fence; return these.

    Args:
        rows: the rows of the model that may be changed.
        skip_locked: never wait for locked rows, if the database supports that.

    Raises:
        RowLocked, DatabaseUnavailable: see ``run_short_transaction``.
    """
    pks = [pk for pk, *_ in seen]

    def end() -> Seen:
        # Locked, because a later lease could have the fence of a row that was just freed.
        locked = for_update(rows.filter(pk__in=pks), skip_locked=skip_locked)
        fences = dict(locked.values_list("pk", "fence"))
        running = [grant for grant in seen if fences.get(grant[0]) == grant[1]]
        if running:
            held = [(pk, fence) for pk, fence, *_ in running]
            verbs.release_all(connections[rows.db], rows.model, held, 0.0)
        return running

    def settle() -> Seen:
        """Return the leases that had ended before the connection was lost."""
        freed = verbs.rows_of(connections[rows.db], rows.model).filter(pk__in=pks, holder="")
        fences = dict(freed.values_list("pk", "fence"))
        ended = [grant for grant in seen if fences.get(grant[0]) == grant[1] + 1]
        if not ended:
            raise Unsettled
        return ended

    return run_short_transaction(rows.db, end, settle=settle)


def _change_and_emit(
    rows: Any, change: ChangeRows, make_event: Callable[..., RowEvent], skip_locked: bool
) -> int:
    """Change the ``rows`` that still match, and emit events for these only."""
    locked = for_update(rows.using(rows.db), skip_locked=skip_locked)
    fences = dict(locked.values_list("pk", "fence"))
    if fences:
        # Only by key: conditions on the clock may no longer be true.
        change(ResourceQuerySet(model=rows.model, using=rows.db).filter(pk__in=list(fences)))
    for pk, fence in fences.items():
        emit(make_event(pk=pk, fence=fence))
    return len(fences)


def _quarantined(reason: str, seconds: float) -> dict[str, Any]:
    """Return the new column values: a held row drains, any other is in quarantine now.

    MariaDB and MySQL assign columns in this order, and later expressions see the new values. So the columns that other
    expressions read come last.
    """
    is_held = ~models.Q(holder="") & models.Q(busy_before__gt=DbNow())

    def if_held(held: Any, free: Any) -> models.Case:
        return models.Case(models.When(is_held, then=held), default=free)

    fence, text = models.F("fence"), models.Value
    return {
        "reason": reason,
        "until": DbLater(seconds),
        "in_service": if_held(text(False), text(True)),
        "status": Status.QUARANTINED,
        "fence": if_held(fence, fence + 1),
        "holder": if_held(models.F("holder"), text("")),
        "busy_before": if_held(models.F("busy_before"), DbLater(seconds)),
    }


def _update(rows: Any, **values: Any) -> int:
    return int(rows.update(**values))


def _return(rows: Any) -> int:
    # The cool-down of a row whose quarantine has ended goes on.
    out_now = models.Q(in_service=False) | models.Q(status=Status.QUARANTINED, until__gt=DbNow())
    out = rows.filter(out_now, holder="", busy_before__gt=DbNow())
    returned = int(out.update(**BACK_IN_SERVICE, busy_before=DbNow(), fence=models.F("fence") + 1))
    return returned + int(rows.update(**BACK_IN_SERVICE))


def _keys(rows: Any) -> list[Any]:
    return retrying(connections[rows.db], lambda: list(rows.values_list("pk", flat=True)))


def _reason(reason: str) -> str:
    return options.text("reason", reason, most=MAX_REASON)


def _duration(duration: Seconds) -> float:
    return options.seconds("duration", duration, most=MAX_DURATION)
