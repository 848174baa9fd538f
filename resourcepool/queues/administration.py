"""Operators' changes to queue groups, queues and servers. ``by``: the operator, for the history.

All functions raise BadOption, DatabaseUnavailable and NotMigrated; each change is all-or-nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from resourcepool import options
from resourcepool.db.dialect import DbMicros, DbNow
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.db.row_locks import row_locked
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.options import labels_of
from resourcepool.queues import reassignment
from resourcepool.queues.models import MAX_BY, MAX_NAME, MAX_PARAMETER, Queue, QueueGroup, Server
from resourcepool.queues.planning import changes as planning
from resourcepool.queues.planning.assignment import Member, QueueSnapshot
from resourcepool.queues.planning.changes import Change
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.queries import (
    MAX_IDS_SHOWN,
    find_queue_group,
    keys_of,
    read_queues,
    read_servers,
    using_of_queues,
    validate_ids,
)
from resourcepool.text import join_names, printable
from resourcepool.translation import gettext_noop as _


def create(
    name: str,
    queue_ids: Sequence[str] = (),
    *,
    parameter: str = "",
    labels: Mapping[str, str] | None = None,
    **settings: Any,
) -> QueueGroup:
    """Create a queue group with these queues.

    Args:
        settings: other columns of ``QueueGroup``: ``strategy``, ``heartbeat_every``, ``judge_dead_after``,
            ``reload_every``, ``handover_timeout``.
    """
    using = using_of_queues()
    queue_group = QueueGroup(name=options.text("queue_group", name, most=MAX_NAME), **settings)

    def work() -> None:
        queue_group.pk = None  # of an attempt that was rolled back
        with transaction.atomic(using=using):
            rows = _new_queues(queue_group, queue_ids, parameter, labels)
            _validate(queue_group, using)
            queue_group.save(using=using, force_insert=True)
            Queue.objects.using(using).bulk_create(rows)

    def settle() -> None:
        if not QueueGroup.objects.using(using).filter(pk=queue_group.pk, name=queue_group.name).exists():
            raise Unsettled

    retrying(connections[using], work, settle=settle)
    return queue_group


def pause(queue_group: str, *, by: str = "") -> None:
    """Let no server start work on the queues of a queue group, from its next heartbeat on; assignments stay."""
    _set_paused(queue_group, True, by)


def resume(queue_group: str, *, by: str = "") -> None:
    """End a pause."""
    _set_paused(queue_group, False, by)


def _set_paused(queue_group: str, is_paused: bool, by: str) -> None:
    rows = QueueGroup.objects.using(using_of_queues()).filter(name=queue_group)
    _change(queue_group, by, lambda *_: rows.update(is_paused=is_paused))


def add_queues(
    queue_group: str,
    queue_ids: Sequence[str],
    *,
    parameter: str = "",
    labels: Mapping[str, str] | None = None,
    by: str = "",
) -> int:
    """Add queues to a queue group; its servers share them at once. Returns the number of queues."""
    keys: list[int] = []

    def add(using: str, locked: QueueGroup) -> None:
        rows, added = Queue.objects.using(using), _new_queues(locked, queue_ids, parameter, labels)
        ids = [queue.queue_id for queue in added]
        existing = sorted(rows.filter(queue_group=locked, queue_id__in=ids).values_list("queue_id", flat=True))
        if existing:
            because = Sentence(_("already exists in %(queue_group)s"), queue_group=printable(locked.name))
            raise BadOption("queue", existing[:MAX_IDS_SHOWN], because=because)
        rows.bulk_create(added)
        keys[:] = rows.filter(queue_group=locked, queue_id__in=ids).values_list("pk", flat=True)

    _change(queue_group, by, add, settle=lambda rows: bool(keys) and rows.filter(pk__in=keys).exists())
    return len(queue_ids)


def change_queues(
    queue_group: str,
    queue_ids: Sequence[str],
    *,
    parameter: str | None = None,
    labels: Mapping[str, str] | None = None,
    by: str = "",
) -> int:
    """Give queues another parameter or other labels (None: unchanged). Returns the number of queues.

    Their servers notice with their next check.
    """
    changed: dict[str, Any] = {} if labels is None else {"labels": labels_of(labels)}
    if parameter is not None:
        changed["parameter"] = _parameter(parameter)
    if not changed:
        because = Sentence(_("a parameter or labels are required"))
        raise BadOption("queue", list(queue_ids)[:MAX_IDS_SHOWN], because=because)
    _change(queue_group, by, lambda using, locked: _locked_rows(using, locked, queue_ids).update(**changed))
    return len(queue_ids)


def remove_queues(queue_group: str, queue_ids: Sequence[str], *, by: str = "") -> int:
    """Remove queues: unowned queues at once, the others when their servers have finished work on them."""
    keys: list[int] = []

    def retire(using: str, locked: QueueGroup) -> None:
        rows = _locked_rows(using, locked, queue_ids)
        keys[:] = rows.values_list("pk", flat=True)
        rows.update(is_retiring=True, req_server=None, requested_at=Coalesce(F("requested_at"), DbNow()))

    def is_done(rows: Any) -> bool:
        return bool(keys) and not rows.filter(pk__in=keys, is_retiring=False).exists()

    _change(queue_group, by, retire, settle=is_done)
    return len(queue_ids)


def pin(queue_group: str, queue_ids: Sequence[str], server: str, *, by: str = "") -> int:
    """Assign these queues to the server of that name whenever it runs; "" unpins. Returns the number of queues.

    Raises:
        BadOption: also for "web-3 #17", as a pin is for all runs of a server.
    """
    name = server and options.text("server", server, most=MAX_NAME)
    if bare_name := name_of_run(name):
        raise BadOption("server", name, Sentence(_("the name without the number: %(name)s"), name=bare_name))
    _change(queue_group, by, lambda using, locked: _locked_rows(using, locked, queue_ids).update(pin=name))
    return len(queue_ids)


def drain(queue_group: str, *servers: str, by: str = "") -> list[str]:
    """Drain servers: they hand over all queues and get no more. Returns their names with numbers.

    Args:
        servers: a name for all its runs, such as "web-3", or one run, such as "web-3 #17".
    """
    return _set_state(queue_group, servers, Server.State.DRAINING, by)


def undrain(queue_group: str, *servers: str, by: str = "") -> list[str]:
    """End a drain; see ``drain``."""
    return _set_state(queue_group, servers, Server.State.UP, by)


def name_of_run(server: str) -> str:
    """Return "web-3" for its run "web-3 #17"; "" for a name, also for a name that looks like a run."""
    if not (run := re.fullmatch(r"(.+) #([0-9]{1,18})", server)):
        return ""
    servers = Server.objects.using(using_of_queues())
    is_name = servers.filter(name=server).exists() and not servers.filter(name=run[1], pk=run[2]).exists()
    return "" if is_name else run[1]


def _set_state(queue_group: str, servers: Sequence[str], state: Server.State, by: str) -> list[str]:
    changed: list[str] = []

    def update(using: str, locked: QueueGroup) -> None:
        names = _select_servers(read_servers(locked, using), servers)
        Server.objects.using(using).filter(pk__in=names).update(state=state)
        changed[:] = names.values()

    _change(queue_group, by, update)
    return changed


def preview(
    queue_group: str,
    *,
    without: Sequence[str] = (),
    joining: Sequence[Member] = (),
    draining: Sequence[str] = (),
    removing: Sequence[str] = (),
) -> tuple[list[Change], list[Member], list[QueueSnapshot]]:
    """Return the changes if servers left, joined or drained, or queues were removed; and all servers and queues.

    Args:
        without, draining: names of servers, as for ``drain``.
        joining: servers that do not exist yet; their keys are negative.
        removing: ids of queues.
    """
    using = using_of_queues()
    row = find_queue_group(queue_group, using)
    servers, queues = read_servers(row, using), read_queues(row, using)
    leaving, drained = _select_servers(servers, without), _select_servers(servers, draining)
    servers = [replace(server, is_draining=True) if server.pk in drained else server for server in servers]
    servers += joining
    key_by_id = {queue.queue_id: queue.pk for queue in queues}
    removed = set(keys_of(row.name, validate_ids(removing), key_by_id))
    queues = [replace(queue, is_retiring=True) if queue.pk in removed else queue for queue in queues]
    changes = planning.plan(queues, servers, STRATEGIES[row.strategy], row.handover_timeout, leaving=leaving)
    return changes, servers, queues


def _change(
    queue_group: str,
    by: str,
    first: Callable[[str, QueueGroup], object],
    *,
    settle: Callable[[Any], bool] = lambda _queues: False,
) -> None:
    """Make the change ``first``, and plan.

    ``settle``: returns whether the queues show, after a lost reply, that the change was made.
    """
    using = using_of_queues()
    row = find_queue_group(queue_group, using)

    def settled() -> reassignment.Outcome:
        if not settle(Queue.objects.using(using)):
            raise Unsettled
        return reassignment.Outcome([])

    reassignment.reassign(using, row.pk, by[:MAX_BY], first=partial(first, using), settle=settled)


def _validate(queue_group: QueueGroup, using: str) -> None:
    """Raise BadOption for the first setting of ``queue_group`` that is not allowed."""
    try:
        queue_group.full_clean(exclude={"name"})
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            raise BadOption(name, getattr(queue_group, name, ""), because=" ".join(messages)) from None
    if QueueGroup.objects.using(using).filter(name=queue_group.name).exists():
        raise BadOption("queue_group", queue_group.name, because=Sentence(_("this name is already in use")))


def _new_queues(
    queue_group: QueueGroup, queue_ids: Sequence[str], parameter: str, labels: Mapping[str, str] | None
) -> list[Queue]:
    """Return new, unsaved queues of a queue group whose row is locked; raises BadOption."""
    ids, needed = validate_ids(queue_ids), labels_of(labels)
    if ranges := [each for each in ids if ".." in each]:
        because = Sentence(_('no ".." in an id; a range is, for example, 0..63 or eu-00..15'))
        raise BadOption("queue", ranges[:MAX_IDS_SHOWN], because=because)
    # Higher than any fence of a removed queue of the same name: the clock covers a queue group that was created again,
    # the generation a clock that did not advance between two changes.
    fence = DbMicros() + queue_group.generation
    of_each = {"parameter": _parameter(parameter), "labels": needed, "fence": fence, "since": DbNow()}
    return [Queue(queue_group=queue_group, queue_id=each, **of_each) for each in ids]


def _parameter(parameter: str) -> str:
    if len(parameter) > MAX_PARAMETER:
        allowed = Sentence(_("text of at most %(count)s characters"), count=MAX_PARAMETER)
        raise BadOption("parameter", parameter, allowed)
    return parameter


def _locked_rows(using: str, queue_group: QueueGroup, queue_ids: Sequence[str]) -> Any:
    """Lock these queues and return them; raises BadOption for missing ids, RowLocked if another one locks a row."""
    ids = validate_ids(queue_ids)
    rows = Queue.objects.using(using).filter(queue_group=queue_group, queue_id__in=ids)
    keys = keys_of(queue_group.name, ids, dict(rows.values_list("queue_id", "pk")))
    # Waiting for a row would keep the servers from planning and handing over, perhaps until they are presumed dead.
    if len(reassignment.lock_unlocked(using, keys)) < len(keys):
        raise row_locked(using)
    return rows


def _select_servers(servers: Sequence[Member], names: Sequence[str]) -> dict[int, str]:
    """Return {key: name with number} of the living servers with these names or runs; raises BadOption."""
    living = [server for server in servers if server.is_alive]
    selected: dict[int, str] = {}
    for name in names:
        matches = {member.pk: str(member) for member in living if name in (member.name, str(member))}
        if not matches:
            if not living:
                raise BadOption("server", name, because=Sentence(_("no server is running")))
            existing = sorted({member.name for member in living})
            raise BadOption("server", name, Sentence(_("one of %(names)s"), names=join_names(existing)))
        selected |= matches
    return selected
