"""Changes the owners of queues, in transactions that hold the queue group's row; few statements for many queues.

A queue whose row is locked by a ``guard`` is left for the next plan, so that it does not delay other queues.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections, models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Coalesce

from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, DbNow, MicrosUntil
from resourcepool.db.rows import batched, for_update
from resourcepool.db.transactions import SHORT_LOCK_WAIT, run_short_transaction
from resourcepool.events.field import stored
from resourcepool.exceptions import ClaimInTransaction
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.planning import changes as planning
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import Action, Change
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.queries import names, read_queues, read_servers

CHUNK = 5_000  # rows in one statement; SQLite takes 32,766 values
MOVE_COLUMNS = (
    *("queue_group", "generation", "queue_pk", "queue_id", "what"),
    *("from_server", "to_server", "fence", "reason"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a transaction. ``postponed``: changes that met a locked row and are due again."""

    changes: Sequence[Change]
    postponed: Sequence[Change] = ()


def reassign(
    using: str,
    queue_group: int,
    by: str,
    *,
    first: Callable[[QueueGroup], object] | None = None,
    leaving: Collection[int] = (),
    if_due: bool = False,
    spare_overdue: bool = False,
    settle: Callable[[], Outcome] | None = None,
    wait: int = SHORT_LOCK_WAIT,
) -> Outcome:
    """Plan, and carry out the plan, in one transaction.

    Args:
        queue_group: primary key.
        by: name of the planning server or the operator, for the moves.
        first: called in the same transaction, before the plan.
        leaving: keys of servers without work; their rows are removed.
        if_due: plan only if a plan is due, so that of many servers that notice a dead one only the first plans.
        spare_overdue: presume no server dead, because the planning server or the database was unavailable.
        settle: called after a lost connection, see ``retrying``; without it, repeating the change must be safe.
        wait: whole seconds to wait for another change.

    Raises:
        ClaimInTransaction: a transaction is open that may see an old snapshot.
        DatabaseUnavailable: nothing was changed, or the outcome is unknown.
        QueueGroup.DoesNotExist: it was deleted.
    """

    def work() -> Outcome:
        locked = lock(using, queue_group)
        if first is not None:
            first(locked)
        servers = read_servers(locked, using, spare_overdue=spare_overdue)
        if if_due and not is_due(locked, servers, using):
            return Outcome([])
        queues = read_queues(locked, using)
        strategy = STRATEGIES[locked.strategy]
        changes = planning.plan(queues, servers, strategy, locked.handover_timeout, leaving=leaving)
        outcome = apply(using, locked, changes, names(servers))
        dead = [server.pk for server in servers if not server.keeps_queues]
        is_any_removed, remaining = _remove_servers(using, [*dead, *leaving])
        _update_idle_since(using, locked)
        # Otherwise a plan would be due again at once, although it could change nothing yet.
        postpones = bool(outcome.postponed) or not remaining.isdisjoint(dead) or _is_any_overdue(using, locked)
        has_changed = bool(outcome.changes or is_any_removed or first)
        _finish(using, locked, by, outcome, has_changed=has_changed, postpones=postpones)
        return outcome

    return _in_transaction(using, work, wait, settle)


def release(
    using: str,
    queue_group: int,
    by: str,
    server: int,
    queues: Collection[int],
    in_doubt: Collection[int],
    wait: int = SHORT_LOCK_WAIT,
) -> Outcome:
    """Give up those ``queues`` of ``server``, none of them in hand, that are requested or ``in_doubt``."""

    def work() -> Outcome:
        locked = lock(using, queue_group)
        servers = read_servers(locked, using)
        mine = [queue for queue in read_queues(locked, using, Q(pk__in=queues)) if queue.cur == server]
        outcome = apply(using, locked, planning.hand_over(mine, servers, in_doubt), names(servers))
        if any(change.changes_owner for change in outcome.changes):
            _update_idle_since(using, locked)
        is_due = locked.is_assignment_due or any(
            change.what is not Action.HANDED_OVER for change in outcome.changes
        )
        postpones = True if outcome.postponed else None
        _finish(
            using, locked, by, outcome, has_changed=bool(outcome.changes), is_due=is_due, postpones=postpones
        )
        return outcome

    return _in_transaction(using, work, wait)


def _in_transaction(
    using: str, work: Callable[[], Outcome], wait: int, settle: Callable[[], Outcome] | None = None
) -> Outcome:
    connection = connections[using]
    if connection.in_atomic_block and not dialect.of(connection).reads_committed(connection):
        raise ClaimInTransaction(
            f"database {using!r}: a transaction at this isolation level sees servers and queues as they were when it"
            " began; change queues outside of it, or at READ COMMITTED"
        )
    return run_short_transaction(using, work, settle=settle, wait=wait)


def lock(using: str, queue_group: int) -> QueueGroup:
    """Begin a change: until the commit only the holder of this row changes queues."""
    # An UPDATE first, as on SQLite a transaction that begins with a read may be unable to write.
    QueueGroup.objects.using(using).filter(pk=queue_group).update(generation=F("generation"))
    rows = QueueGroup.objects.using(using).annotate(micros_of_rest=MicrosUntil("rests_until"))
    return rows.get(pk=queue_group)


def is_due(queue_group: Any, servers: Sequence[Member], using: str) -> bool:
    """Return whether a plan may change something, and planning is not postponed."""
    if (queue_group.micros_of_rest or 0) > 0:
        return False
    is_any_dead = not all(server.keeps_queues for server in servers)
    return queue_group.is_assignment_due or is_any_dead or _is_any_overdue(using, queue_group)


def _is_any_overdue(using: str, queue_group: QueueGroup) -> bool:
    limit = planning.takeover_after(queue_group.handover_timeout, queue_group.judge_dead_after)
    overdue = Queue.objects.using(using).filter(queue_group=queue_group, requested_at__lte=DbLater(-limit))
    return bool(overdue.exists())


def apply(
    using: str, queue_group: QueueGroup, changes: Sequence[Change], server_names: Mapping[int | None, str]
) -> Outcome:
    """Carry out and record these changes, except where rows are locked; the caller increments the generation."""
    if not changes:
        return Outcome([])
    unlocked = lock_unlocked(using, [change.queue.pk for change in changes])
    done = [change for change in changes if change.queue.pk in unlocked]
    record(using, queue_group, queue_group.generation + 1, done, server_names)
    by_action = defaultdict[Action, list[Change]](list)
    for change in done:
        by_action[Action.ASSIGNED if change.changes_owner else change.what].append(change)
    for action, alike in by_action.items():
        for chunk in batched(alike, CHUNK):
            rows = Queue.objects.using(using).filter(pk__in=[change.queue.pk for change in chunk])
            _write(rows, action, chunk)
    return Outcome(done, [change for change in changes if change.queue.pk not in unlocked])


def _write(rows: Any, action: Action, changes: Sequence[Change]) -> None:
    """Carry out these changes of these rows; all are the same ``action``."""
    if action is Action.REMOVED:
        rows.delete()
    elif action is Action.CANCELLED:
        rows.update(req_server_id=None, requested_at=None)
    elif action is Action.REQUESTED:
        # The time of the first request stays, as a request by another server does not extend it.
        rows.update(req_server_id=_takers(changes), requested_at=Coalesce(F("requested_at"), DbNow()))
    else:
        no_request: dict[str, Any] = {"req_server_id": None, "requested_at": None}
        rows.update(cur_server_id=_takers(changes), **no_request, fence=F("fence") + 1, since=DbNow())


def _takers(changes: Sequence[Change]) -> Case:
    """Return the expression for the new server of each of these queues."""
    by_taker = defaultdict[int | None, list[int]](list)
    for change in changes:
        by_taker[change.to].append(change.queue.pk)
    cases = [When(pk__in=pks, then=Value(to)) for to, pks in by_taker.items() if to is not None]
    return Case(*cases, default=None, output_field=models.BigIntegerField())


def record(
    using: str,
    queue_group: QueueGroup,
    generation: int,
    changes: Sequence[Change],
    server_names: Mapping[int | None, str],
) -> None:
    """Add these changes to the moves of ``generation``; ``server_names``: by key.

    ``bulk_create`` would take three times as long as the rest of a plan of 10,000 queues.
    """
    connection = connections[using]
    table, at, *columns = map(connection.ops.quote_name, (Move._meta.db_table, "at", *MOVE_COLUMNS))
    for chunk in batched(changes, CHUNK):
        rows = [
            (
                *(queue_group.name, generation, change.queue.pk, change.queue.queue_id, change.what.value),
                *(server_names.get(change.queue.cur, ""), server_names.get(change.to, "")),
                *(change.queue.fence + change.changes_owner, stored(change.reason)),
            )
            for change in chunk
        ]
        insert, values = dialect.of(connection).insert_rows(table, columns, rows, at)
        dialect.run(connection, insert, values, dialect.row_count)


def lock_unlocked(using: str, pks: Sequence[int]) -> set[int]:
    """Lock those of these queues that no other transaction has locked, and return their keys."""
    if not connections[using].features.has_select_for_update_skip_locked:
        return set(pks)
    locked: set[int] = set()
    for chunk in batched(pks, CHUNK):
        rows = Queue.objects.using(using).filter(pk__in=chunk)
        locked.update(for_update(rows, skip_locked=True).values_list("pk", flat=True))
    return locked


def _remove_servers(using: str, pks: Sequence[int]) -> tuple[bool, set[int]]:
    """Remove servers that have no queue left; return whether any was removed, and the keys of the others."""
    if not pks:
        return False, set()
    # A separate query, as inside the DELETE it would wait for locked rows.
    owners = set(Queue.objects.using(using).filter(cur_server__in=pks).values_list("cur_server", flat=True))
    removable = [pk for pk in pks if pk not in owners]
    return bool(removable and Server.objects.using(using).filter(pk__in=removable).delete()[0]), owners


def _update_idle_since(using: str, queue_group: QueueGroup) -> None:
    """Update since when servers have had no queue, for the alarm "idle server"."""
    servers = Server.objects.using(using).filter(queue_group=queue_group).order_by()
    has_queues = Exists(Queue.objects.filter(cur_server=OuterRef("pk")))
    rows = list(servers.annotate(has_queues=has_queues).values_list("pk", "has_queues", "idle_since"))
    # By key, so that heartbeats do not block it.
    for pks, idle_since in (
        ([pk for pk, has_queues, since in rows if has_queues and since is not None], None),
        ([pk for pk, has_queues, since in rows if not has_queues and since is None], DbNow()),
    ):
        if pks:
            servers.filter(pk__in=pks).update(idle_since=idle_since)


def _finish(
    using: str,
    queue_group: QueueGroup,
    by: str,
    outcome: Outcome,
    *,
    has_changed: bool,
    is_due: bool = False,
    postpones: bool | None,
) -> None:
    """Write the outcome to the queue group. ``postpones``: postpone the next plan by a heartbeat; None: unchanged."""
    is_due = is_due or bool(outcome.postponed)
    columns: dict[str, Any] = {"is_assignment_due": Value(is_due)}
    if postpones is not None:
        # Otherwise every server would plan with every heartbeat while rows stay locked.
        columns["rests_until"] = DbLater(queue_group.heartbeat_every) if postpones else None
    if has_changed:
        columns |= {"generation": F("generation") + 1, "assigned_at": DbNow(), "assigned_by": by}
    QueueGroup.objects.using(using).filter(pk=queue_group.pk).update(**columns)
