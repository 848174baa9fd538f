"""Finds queue groups, servers and queues; ids of queues are single ids, or ranges such as 0..63."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import router
from django.db.models import Q

from resourcepool import options
from resourcepool.db.dialect import MicrosUntil
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.models import MAX_QUEUE_ID, Queue, QueueGroup, Server
from resourcepool.queues.planning.assignment import Member, QueueSnapshot
from resourcepool.text import MAX_LISTED, join_names, printable
from resourcepool.translation import gettext_noop as _

COLUMNS = ("pk", "queue_id", "cur_server_id", "req_server_id", "fence", "labels", "pin", "is_retiring")

MAX_QUEUES_AT_ONCE = 10_000
MAX_IDS_SHOWN = 5

_RANGE = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]{1,20})\.\.(?P<last>[0-9]{1,20})")


def using_of_queues() -> str:
    """Return the alias of the database with the queue groups, servers and queues."""
    return str(router.db_for_write(QueueGroup))


def find_queue_group(name: str, using: str) -> QueueGroup:
    """Return the queue group of this name.

    Raises:
        BadOption: it does not exist; the error lists the existing ones.
    """
    queue_group = QueueGroup.objects.using(using).filter(name=str(name)[:200]).first()
    if queue_group is None:
        names = QueueGroup.objects.using(using).order_by("name").values_list("name", flat=True)
        existing = list(names[: MAX_LISTED + 1])
        add = "`manage.py resourcepool_queues add <queue group> <queue> .. --new`"
        if not existing:
            because = Sentence(_("none exists yet; create one with %(command)s"), command=add)
            raise BadOption("queue_group", name, because=because)
        text = _("one of %(names)s; create one with %(command)s")
        raise BadOption("queue_group", name, Sentence(text, names=join_names(existing), command=add))
    return queue_group


def read_servers(queue_group: QueueGroup, using: str, *, spare_overdue: bool = False) -> list[Member]:
    """Return its servers in the order of registration; ``spare_overdue``: presume none of them dead."""
    rows = Server.objects.using(using).filter(queue_group=queue_group).with_ages()
    return [_member(row, spare_overdue) for row in rows.order_by("registered_at", "pk")]


def _member(row: Any, spare_overdue: bool) -> Member:
    of_row = (row.pk, row.name, row.weight, row.labels, row.limit, row.ttl)
    is_alive, is_draining = row.micros_left > 0, row.state == Server.State.DRAINING
    return Member(*of_row, is_alive, is_draining, is_spared=spare_overdue and not is_alive)


def read_queues(queue_group: QueueGroup, using: str, *only: Q) -> list[QueueSnapshot]:
    """Return its queues in the order in which they were added; ``only``: conditions that they match."""
    rows = Queue.objects.using(using).filter(*only, queue_group=queue_group)
    columns = rows.order_by("pk").annotate(asked=MicrosUntil("requested_at")).values_list(*COLUMNS, "asked")
    return [snapshot_of(*row) for row in columns]


def snapshot_of(*row: Any) -> QueueSnapshot:
    """Return the snapshot of a queue from its ``COLUMNS`` and the microseconds from now to its request."""
    pk, queue_id, cur, req, fence, labels, pin, is_retiring, asked = row
    requested_ago = None if asked is None else -asked / 1_000_000
    return QueueSnapshot(pk, queue_id, cur, req, fence, labels, pin, is_retiring, requested_ago)


def of_server(server: int) -> Q:
    """Return the condition that this server has the queue or has requested it."""
    return Q(cur_server=server) | Q(req_server=server)


def names(servers: Iterable[Member]) -> dict[int | None, str]:
    """Return the names of the servers, by key."""
    return {server.pk: str(server) for server in servers}


def expand_ids(words: Iterable[str]) -> list[str]:
    """Expand ranges to ids: "7" is one id, "0..63" are 64, "eu-00..15" are 16.

    Raises:
        BadOption: a range goes backwards, or there are too many ids.
    """
    ids: list[str] = []
    for word in words:
        ids += _expand(word)
        _refuse_too_many(word, len(ids))
    return ids


def _expand(word: str) -> list[str]:
    match = _RANGE.fullmatch(word)
    if not match:
        return [word]
    prefix, first, last = match["prefix"], match["first"], match["last"]
    if int(last) < int(first):
        raise BadOption("queue", word, Sentence(_("an ascending range, such as 0..63")))
    _refuse_too_many(word, int(last) - int(first) + 1)
    width = len(first) if first.startswith("0") else 1
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def validate_ids(queue_ids: Sequence[str]) -> list[str]:
    """Return these ids if all are valid and different; raises BadOption."""
    valid = [options.text("queue", each, most=MAX_QUEUE_ID) for each in queue_ids]
    if duplicates := sorted(each for each, count in Counter(valid).items() if count > 1):
        raise BadOption("queue", duplicates[:MAX_IDS_SHOWN], because=Sentence(_("each queue once")))
    _refuse_too_many(f"{len(valid)} of them", len(valid))
    return valid


def _refuse_too_many(value: str, count: int) -> None:
    if count > MAX_QUEUES_AT_ONCE:
        raise BadOption("queue", value, Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE))


def keys_of(queue_group: str, queue_ids: Sequence[str], key_by_id: Mapping[str, int]) -> list[int]:
    """Return the keys of these queues; raises BadOption, which names the missing ids."""
    if missing := [each for each in queue_ids if each not in key_by_id]:
        singular = Sentence(_("%(queue_group)s has no such queue"), queue_group=printable(queue_group))
        plural = Sentence(_("%(queue_group)s has no such queues"), queue_group=printable(queue_group))
        raise BadOption("queue", missing[:MAX_IDS_SHOWN], because=singular if len(missing) == 1 else plural)
    return [key_by_id[each] for each in queue_ids]
