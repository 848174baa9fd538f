"""Operators' changes to queue groups, queues and servers. ``by``: the operator, for the history.

All raise BadOption, DatabaseUnavailable and NotMigrated; no change is made partly.
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
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import DbMicros, DbNow
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import join_names, labels_of, printable
from resourcepool.leases.short_transactions import locked_row_error
from resourcepool.queues import reassignment
from resourcepool.queues.ids import MAX_IDS_SHOWN, checked_ids, known
from resourcepool.queues.models import MAX_BY, MAX_NAME, MAX_PARAMETER, Queue, QueueGroup, Server
from resourcepool.queues.planning import changes as planning
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.changes import Change, QueueSnapshot, ServerSnapshot
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.queries import find_queue_group, read_queues, read_servers, using_of_queues


def create(
    name: str,
    queue_ids: Sequence[str] = (),
    *,
    parameter: str = "",
    labels: Mapping[str, str] | None = None,
    by: str = "",
    **settings: Any,
) -> QueueGroup:
    """Create a queue group with these queues.

    Args:
        settings: ``strategy``, ``heartbeat_every``, ``judge_dead_after``, ``reload_every``, ``handover_timeout``.
    """
    using = using_of_queues()
    found = QueueGroup(name=options.text("queue_group", name, most=MAX_NAME), **settings)

    def work() -> None:
        found.pk = None
        with transaction.atomic(using=using):
            rows = _new_queues(found, queue_ids, parameter, labels)
            _validate(found, using)
            found.save(using=using, force_insert=True)
            Queue.objects.using(using).bulk_create(rows)

    def settle() -> None:
        if not QueueGroup.objects.using(using).filter(pk=found.pk, name=found.name).exists():
            raise Unsettled

    retrying(connections[using], work, settle=settle)
    return found


def pause(queue_group: str, *, by: str = "") -> None:
    """Stop the servers from beginning work on the queues of a queue group, within a heartbeat; owners stay."""
    _set_paused(queue_group, True, by)


def resume(queue_group: str, *, by: str = "") -> None:
    """End ``pause``."""
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
    """Add queues to a queue group; its servers share them at once. Returns how many."""
    keys: list[int] = []

    def add(using: str, locked: QueueGroup) -> None:
        rows, added = Queue.objects.using(using), _new_queues(locked, queue_ids, parameter, labels)
        ids = [queue.queue_id for queue in added]
        there_are = rows.filter(queue_group=locked, queue_id__in=ids).values_list("queue_id", flat=True)
        if there := sorted(there_are):
            one = Sentence(_("%(queue_group)s has it already"), queue_group=printable(locked.name))
            several = Sentence(_("%(queue_group)s has them already"), queue_group=printable(locked.name))
            raise BadOption("queue", there[:MAX_IDS_SHOWN], because=one if len(there) == 1 else several)
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
    """Give queues another parameter or other labels (None: unchanged). Returns how many.

    Their servers notice with their next look.
    """
    changed: dict[str, Any] = {} if labels is None else {"labels": labels_of(labels)}
    if parameter is not None:
        changed["parameter"] = _parameter(parameter)
    if not changed:
        because = Sentence(_("with another parameter or other labels"))
        raise BadOption("queue", list(queue_ids)[:MAX_IDS_SHOWN], because=because)
    _change(queue_group, by, lambda using, locked: _found(using, locked, queue_ids).update(**changed))
    return len(queue_ids)


def remove_queues(queue_group: str, queue_ids: Sequence[str], *, by: str = "") -> int:
    """Remove queues: those without an owner at once, the others when their servers have finished with them."""
    keys: list[int] = []

    def retire(using: str, locked: QueueGroup) -> None:
        rows = _found(using, locked, queue_ids)
        keys[:] = rows.values_list("pk", flat=True)
        rows.update(is_retiring=True, req_server=None, requested_at=Coalesce(F("requested_at"), DbNow()))

    def is_done(rows: Any) -> bool:
        return bool(keys) and not rows.filter(pk__in=keys, is_retiring=False).exists()

    _change(queue_group, by, retire, settle=is_done)
    return len(queue_ids)


def pin(queue_group: str, queue_ids: Sequence[str], server: str, *, by: str = "") -> int:
    """Assign these queues to the server of that name whenever there is one; "" ends that. Returns how many.

    Raises:
        BadOption: also for "web-3 #17": a pin is for all runs of a server, not for one.
    """
    name = server and options.text("server", server, most=MAX_NAME)
    if alone := name_of_run(name):
        raise BadOption("server", name, Sentence(_("its name alone, without the number: %(name)s"), name=alone))
    _change(queue_group, by, lambda using, locked: _found(using, locked, queue_ids).update(pin=name))
    return len(queue_ids)


def drain(queue_group: str, *servers: str, by: str = "") -> list[str]:
    """Make servers give up all queues and get no more. Returns their names and numbers.

    Args:
        servers: names (of all servers with it), or name and number, such as "web-3 #17".
    """
    return _set_state(queue_group, servers, Server.State.DRAINING, by)


def undrain(queue_group: str, *servers: str, by: str = "") -> list[str]:
    """Let drained servers get queues again; see ``drain``."""
    return _set_state(queue_group, servers, Server.State.UP, by)


def name_of_run(server: str) -> str:
    """Return "web-3" for "web-3 #17", one of its runs; otherwise "", also if a server has exactly that name."""
    if not (run := re.fullmatch(r"(.+) #([0-9]{1,18})", server)):
        return ""
    servers = Server.objects.using(using_of_queues())
    is_name = servers.filter(name=server).exists() and not servers.filter(name=run[1], pk=run[2]).exists()
    return "" if is_name else run[1]


def _set_state(queue_group: str, servers: Sequence[str], state: Server.State, by: str) -> list[str]:
    changed: list[str] = []

    def put(using: str, locked: QueueGroup) -> None:
        found = _named(read_servers(locked, using), servers)
        Server.objects.using(using).filter(pk__in=found).update(state=state)
        changed[:] = found.values()

    _change(queue_group, by, put)
    return changed


def preview(
    queue_group: str,
    *,
    without: Sequence[str] = (),
    joining: Sequence[Member] = (),
    draining: Sequence[str] = (),
    removing: Sequence[str] = (),
) -> tuple[list[Change], list[ServerSnapshot], list[QueueSnapshot]]:
    """Return the changes, all servers and all queues, if servers left, joined or drained, or queues were removed.

    Args:
        without, draining: names of servers, as for ``drain``.
        joining: servers that do not exist yet; their keys are negative.
        removing: ids of queues.
    """
    using = using_of_queues()
    found = find_queue_group(queue_group, using)
    there, queues = read_servers(found, using), read_queues(found, using)
    leaving, drained = _named(there, without), _named(there, draining)
    stay = [replace(one, is_draining=True) if one.member.pk in drained else one for one in there]
    servers = [*stay, *map(ServerSnapshot, joining)]
    gone = set(known(found.name, checked_ids(removing), {queue.queue_id: queue.pk for queue in queues}))
    queues = [replace(queue, is_retiring=True) if queue.pk in gone else queue for queue in queues]
    changes = planning.plan(
        queues, servers, STRATEGIES[found.strategy], found.handover_timeout, leaving=leaving
    )
    return changes, servers, queues


def _change(
    queue_group: str,
    by: str,
    first: Callable[[str, QueueGroup], object],
    *,
    settle: Callable[[Any], bool] = lambda _queues: False,
) -> None:
    """Make the change ``first``, and plan; ``settle``: whether, after a lost reply, queues show that it was made."""
    using = using_of_queues()
    found = find_queue_group(queue_group, using)

    def settled() -> reassignment.Outcome:
        if not settle(Queue.objects.using(using)):
            raise Unsettled
        return reassignment.Outcome([])

    made = partial(first, using)
    reassignment.reassign(using, found.pk, by[:MAX_BY], first=made, settle=settled)


def _validate(queue_group: QueueGroup, using: str) -> None:
    """Raise BadOption for the first setting of ``queue_group`` that is not allowed."""
    try:
        queue_group.full_clean(exclude={"name"})
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            raise BadOption(name, getattr(queue_group, name, ""), because=" ".join(messages)) from None
    if QueueGroup.objects.using(using).filter(name=queue_group.name).exists():
        raise BadOption(
            "queue_group", queue_group.name, because=Sentence(_("there is one of this name already"))
        )


def _new_queues(
    queue_group: QueueGroup, queue_ids: Sequence[str], parameter: str, labels: Mapping[str, str] | None
) -> list[Queue]:
    """Return new, unsaved queues of a queue group whose row is locked; raises BadOption."""
    ids, needed = checked_ids(queue_ids), labels_of(labels)
    if ranges := [each for each in ids if ".." in each]:
        allowed = Sentence(_("no two dots in it; a range is such as 0..63 or eu-00..15"))
        raise BadOption("queue", ranges[:MAX_IDS_SHOWN], because=allowed)
    # Higher than any fence of a removed queue of the same name: by the clock, also of a queue group that was created
    # again, and by the generation, also if the clock stood still between two changes.
    fence = DbMicros() + queue_group.generation
    of_each = {"parameter": _parameter(parameter), "labels": needed, "fence": fence, "since": DbNow()}
    return [Queue(queue_group=queue_group, queue_id=each, **of_each) for each in ids]


def _parameter(parameter: str) -> str:
    if len(parameter) > MAX_PARAMETER:
        allowed = Sentence(_("text of at most %(count)s characters"), count=MAX_PARAMETER)
        raise BadOption("parameter", parameter, allowed)
    return parameter


def _found(using: str, queue_group: QueueGroup, queue_ids: Sequence[str]) -> Any:
    checked = checked_ids(queue_ids)
    rows = Queue.objects.using(using).filter(queue_group=queue_group, queue_id__in=checked)
    keys = known(queue_group.name, checked, dict(rows.values_list("queue_id", "pk")))
    # Waiting for a row here would stop the servers from planning and handing over, longer than some may live.
    if len(reassignment.unlocked(using, keys)) < len(keys):
        raise locked_row_error(using)
    return rows


def _named(servers: Sequence[ServerSnapshot], names: Sequence[str]) -> dict[int, str]:
    """Return the living servers of these names, or names and numbers, by key; raises BadOption."""
    living = [server.member for server in servers if server.is_alive]
    found: dict[int, str] = {}
    for name in names:
        so_called = {member.pk: str(member) for member in living if name in (member.name, str(member))}
        if not so_called:
            if not living:
                raise BadOption("server", name, because=Sentence(_("there is no server now")))
            there_are = sorted({member.name for member in living})
            raise BadOption("server", name, Sentence(_("one of %(names)s"), names=join_names(there_are)))
        found |= so_called
    return found
