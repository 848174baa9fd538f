"""Registers a process as a server: one row, leased from the start (R1.1).

A process that comes back gets another row, so the fence of its lease is always the first. It inherits the queues of its
last run, so no queue moves because the database was away.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connections
from django.db.models import F
from django.utils.translation import gettext_noop as _

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import Unsettled
from resourcepool.dialect import DbLater, DbNow
from resourcepool.events import Sentence, say
from resourcepool.exceptions import BadOption, ClaimInTransaction, RowLocked
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.queues import moving
from resourcepool.queues.models import Queue, Server, TaskType
from resourcepool.queues.planning.changes import Change, What
from resourcepool.queues.queries import of_server, read_queues

FIRST_FENCE = 1
REGISTERS_WITHIN = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Application:
    """The options with which a server registers."""

    name: str
    weight: int
    labels: dict[str, str]
    limit: int | None
    state: str = Server.State.UP


def register(
    using: str,
    task_type: TaskType,
    application: Application,
    on_lost: Callable[[Lease], None],
    after: int | None = None,
) -> Lease:
    """Add a server to ``task_type``, and plan; return the lease of its row.

    Args:
        on_lost: see ``Terms``. The keeper only watches the lease: the server renews it with its looks.
        after: the primary key of the last run of this process: its remaining queues are inherited, and no other server
            is judged dead, as it may have been away, too. None: this is the first run.

    Raises:
        BadOption: the task type has no queues.
        ClaimInTransaction: a transaction is open.
        DatabaseUnavailable, TaskType.DoesNotExist: it is not registered, or no other server will ever see it.
    """
    if connections[using].in_atomic_block:
        raise ClaimInTransaction("a server registers outside of transactions: inside, nobody would see it")
    holder, grant, ttl = default_holder(), Grant(0, FIRST_FENCE, "", 0.0), 0.0

    def insert(locked: TaskType) -> None:
        nonlocal grant, ttl
        if not Queue.objects.using(using).filter(task_type=locked).exists():
            add = f"`manage.py resourcepool_queues add {locked.name} <queue> ..`"
            raise BadOption(
                "task_type",
                locked.name,
                because=Sentence(_("it has no queues; add some: %(command)s"), command=add),
            )
        sent_at, ttl = monotonic(), locked.judge_dead_after
        row = Server(
            task_type_id=locked.pk,  # not the object: a router may send leased rows to another database
            **asdict(application),
            ttl=ttl,
            holder=holder,
            fence=FIRST_FENCE,
            busy_before=DbLater(ttl),
            **{moment: DbNow() for moment in ("registered_at", "idle_since", "stirred_at")},
        )
        row.save(using=using, force_insert=True)
        if after is not None:
            _inherit(using, locked, after, row)
        grant = Grant(row.pk, FIRST_FENCE, holder, sent_at)

    def settle() -> moving.Outcome:
        if not Server.objects.using(using).filter(pk=grant.pk, holder=holder).exists():
            raise Unsettled
        return moving.Outcome([])

    def work() -> None:
        about: dict[str, Any] = {} if after is None else {"leaving": [after], "spares": True}
        moving.reassign(using, task_type.pk, application.name, first=insert, settle=settle, **about)

    _in_turn(work)
    every = task_type.heartbeat_every
    terms = Terms(ttl=ttl, holder=holder, renew_every=every, renew_while=lambda: False, on_lost=on_lost)
    return Lease(Server, using, grant, terms)


def _in_turn(work: Callable[[], None]) -> None:
    """Repeat ``work`` while others plan: of servers that start together, each waits for the earlier ones."""
    gives_up_at = monotonic() + REGISTERS_WITHIN
    while True:
        try:
            return work()
        except RowLocked:
            if monotonic() > gives_up_at:
                raise


def _inherit(using: str, task_type: TaskType, old: int, new: Server) -> None:
    """Give ``new`` the requests, rank, and unlocked queues (under new fences) of ``old``, if its row still exists."""
    last = Server.objects.using(using).filter(pk=old, task_type=task_type).first()
    if last is None:
        return
    Server.objects.using(using).filter(pk=new.pk).update(registered_at=last.registered_at)
    reason = say("came_back", server=str(last), taker=str(new))
    theirs = [queue for queue in read_queues(task_type, using, of_server(old)) if not queue.is_retiring]
    changes = [
        Change(queue, What.ASSIGNED if queue.cur == old else What.REQUESTED, new.pk, reason) for queue in theirs
    ]
    moving.apply(using, task_type, changes, {old: str(last), new.pk: str(new)})
    # The following plan is a change of its own.
    TaskType.objects.using(using).filter(pk=task_type.pk).update(generation=F("generation") + 1)
    task_type.generation += 1
