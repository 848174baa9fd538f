"""Registers a process as a server: one row, leased from the start.

A process that registers again gets another row, so its lease always has the first fence. It inherits the queues of its
last run, so that no queue moves because the database was unavailable.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connections
from django.db.models import F

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import Unsettled
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import BadOption, ClaimInTransaction, RowLocked
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.queues import reassignment
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.planning.changes import Action, Change
from resourcepool.queues.queries import of_server, read_queues
from resourcepool.translation import gettext_noop as _

FIRST_FENCE = 1
REGISTER_TIMEOUT = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The options with which a server registers."""

    name: str
    weight: int
    labels: dict[str, str]
    limit: int | None
    state: str = Server.State.UP


def register(
    using: str,
    queue_group: QueueGroup,
    config: ServerConfig,
    on_lost: Callable[[Lease], None],
    after: int | None = None,
) -> Lease:
    """Add a server to ``queue_group``, and plan; return the lease of its row.

    Args:
        on_lost: see ``Terms``. The keeper only watches the lease; the server renews it with its checks.
        after: primary key of the last run of this process. Its remaining queues are inherited, and no other server is
            presumed dead, as it may have lost the database, too. None: this is the first run.

    Raises:
        BadOption: the queue group has no queues.
        ClaimInTransaction: a transaction is open.
        DatabaseUnavailable, QueueGroup.DoesNotExist: it is not registered, or no other server will ever see it.
    """
    if connections[using].in_atomic_block:
        raise ClaimInTransaction("start a server outside of transactions, or no other server would see its row")
    holder, grant, ttl = default_holder(), Grant(0, FIRST_FENCE, "", 0.0), 0.0

    def insert(locked: QueueGroup) -> None:
        nonlocal grant, ttl
        if not Queue.objects.using(using).filter(queue_group=locked).exists():
            add = f"`manage.py resourcepool_queues add {locked.name} <queue> ..`"
            because = Sentence(_("it has no queues; add some: %(command)s"), command=add)
            raise BadOption("queue_group", locked.name, because=because)
        sent_at, ttl = monotonic(), locked.judge_dead_after
        row = Server(
            queue_group_id=locked.pk,  # not the object, as a router may send leased rows to another database
            **asdict(config),
            ttl=ttl,
            holder=holder,
            fence=FIRST_FENCE,
            busy_before=DbLater(ttl),
            **{moment: DbNow() for moment in ("registered_at", "idle_since", "last_activity_at")},
        )
        row.save(using=using, force_insert=True)
        if after is not None:
            _inherit(using, locked, after, row)
        grant = Grant(row.pk, FIRST_FENCE, holder, sent_at)

    def settle() -> reassignment.Outcome:
        if not Server.objects.using(using).filter(pk=grant.pk, holder=holder).exists():
            raise Unsettled
        return reassignment.Outcome([])

    def work() -> None:
        options: dict[str, Any] = {} if after is None else {"leaving": [after], "spare_overdue": True}
        reassignment.reassign(using, queue_group.pk, config.name, first=insert, settle=settle, **options)

    retry_while_locked(work, REGISTER_TIMEOUT)
    every = queue_group.heartbeat_every
    terms = Terms(ttl=ttl, holder=holder, renew_every=every, is_renewed_by_holder=True, on_lost=on_lost)
    return Lease(Server, using, grant, terms)


def retry_while_locked(work: Callable[[], object], seconds: float) -> None:
    """Repeat ``work`` while other servers plan, for at most this number of ``seconds``.

    Of servers that start or stop together, each waits for the earlier ones.

    Raises:
        RowLocked: the row of the queue group stayed locked.
    """
    deadline = monotonic() + seconds
    while True:
        try:
            work()
        except RowLocked:
            if monotonic() > deadline:
                raise
        else:
            return


def _inherit(using: str, queue_group: QueueGroup, old: int, new: Server) -> None:
    """Give ``new`` the requests, rank and unlocked queues (with new fences) of ``old``, if its row still exists."""
    last = Server.objects.using(using).filter(pk=old, queue_group=queue_group).first()
    if last is None:
        return
    Server.objects.using(using).filter(pk=new.pk).update(registered_at=last.registered_at)
    reason = sentence_for("came_back", server=str(last), taker=str(new))
    inherited = [queue for queue in read_queues(queue_group, using, of_server(old)) if not queue.is_retiring]
    changes = [
        Change(queue, Action.ASSIGNED if queue.cur == old else Action.REQUESTED, new.pk, reason)
        for queue in inherited
    ]
    reassignment.apply(using, queue_group, changes, {old: str(last), new.pk: str(new)})
    # The following plan is a separate change.
    QueueGroup.objects.using(using).filter(pk=queue_group.pk).update(generation=F("generation") + 1)
    queue_group.generation += 1
