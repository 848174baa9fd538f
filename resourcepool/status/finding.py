"""Finds anything by what an operator has at hand: a number, an address, a holder, a lock, a task, a user name."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import router
from django.db.models import Max
from django.db.models.functions import Lower
from django.utils.text import capfirst

from resourcepool.events import localized
from resourcepool.history.models import MAX_ACTOR, Event
from resourcepool.queues.models import Queue, QueueGroup, Server
from resourcepool.queues.queries import using_of_queues
from resourcepool.status.alarm import ABOUT_LOCKS, LOCK_LABELS
from resourcepool.status.event_text import add_sentences
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus, lock_named
from resourcepool.status.locks.summary import held_by, lock_facts, processes
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.registry import named_systems
from resourcepool.status.resources import why
from resourcepool.status.resources.holders import ActiveLease
from resourcepool.status.search import find, without_password
from resourcepool.status.snapshots import fetch_all
from resourcepool.status.system import figure_text
from resourcepool.status.times import ago, duration
from resourcepool.taskqueue.abstract import work_models
from resourcepool.taskqueue.models import Task
from resourcepool.translation import gettext as _

MAX_FOUND = 10  # of each sort
MAX_EVENTS = 5
MAX_CONTAINERS = 1_000  # streams, dispensers or topics whose tasks or timers are searched
NEWEST = 100_000  # events that are searched for an operator
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was found.

    Attributes:
        title: what it is.
        sentences: its state, for people.
        model, key: its row; None: it has no page. ``filters``: of the list of the model, instead of a key.
        related: (model, key, text) of other rows that the sentences are about.
    """

    title: str
    sentences: Sequence[str]
    model: Any = None
    key: Any = None
    related: Sequence[tuple[Any, Any, str]] = ()
    filters: Mapping[str, str] = field(default_factory=dict)


def find_everything(text: str, models: Sequence[Any], visible: Set[Any]) -> Iterator[Found]:
    """Yield what ``text`` names, resources and holders first.

    Args:
        text: what the operator has at hand; without a password if it is a proxy's address.
        models: the resource models that the user may view; ``visible``: the other models.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    text = without_password(text.strip())[:MAX_TEXT]
    if not text or not text.isprintable():
        return
    if models:
        is_number = text.startswith("#") and text[1:].isdecimal()
        yield from _resources_and_holders(text.removeprefix("#") if is_number else text, models)
    for search in (_of_systems, _queues, _locks, _work, _operators):
        yield from search(text, visible)


def _resources_and_holders(text: str, models: Sequence[Any]) -> Iterator[Found]:
    matches = find(text, models, MAX_FOUND)
    for row in matches.resources:
        yield _resource(row)
    if matches.process:
        yield _holder(why.holder(matches.process, models, MAX_FOUND, threads=matches.holders))
    else:
        for name in matches.holders:
            yield _holder(why.holder(name, models, MAX_FOUND))
    if matches.more:
        yield Found(_("More matches"), [_("Only the first are shown; type more of the name.")])


def _resource(row: Any) -> Found:
    *about, (_why, explanation), check = why.facts(why.resource(row))
    line = ", ".join(f"{name}: {value}" for name, value in (*about, check))
    name = f"{row.pk}: {row}" if str(row) != str(row.pk) else str(row.pk)
    return Found(f"{capfirst(row._meta.verbose_name)} {name}", [capfirst(line), explanation], type(row), row.pk)


def _holder(holder: why.HolderExplanation) -> Found:
    lines = []
    if holder.leases_total:
        lines.append(_("Resources that it holds: %d.") % holder.leases_total)
    lines += [_("It holds %s.") % held.called for held in holder.holds]
    lines += [waiter.said for waiter in holder.waits]
    related = [(type(lease.row), lease.row.pk, _leased(lease)) for lease in holder.leases]
    related += [(held.kind.model, held.kind.page_key(held.name), held.called) for held in holder.holds]
    return Found(_("Holder %s") % holder.holder, lines, related=related)


def _leased(lease: ActiveLease) -> str:
    left = _("%s left") % duration(lease.expires_in)
    return f"{lease.row.pk}: {lease.row}, {left}"


def _of_systems(text: str, visible: Set[Any]) -> Iterator[Found]:
    for system in named_systems().values():
        name = _name_in(text, system.subject) or text
        if {*system.viewed} <= visible and (status := system.reader.get(name)):
            shown = status if {*system.details} <= visible else status.redacted()
            title = f"{capfirst(system.title)} {name}"
            yield Found(title, _figures(system, shown), system.viewed[0], name, _blocking(shown))


def _blocking(status: Any) -> list[tuple[Any, Any, str]]:
    """Return the task that blocks a stream, unless it was redacted."""
    if getattr(status, "is_blocked", False) and status.first.pk is not None:
        return [(Task, status.first.pk, f"{capfirst(Task._meta.verbose_name)} {status.first.key}".rstrip())]
    return []


def _name_in(text: str, pattern: str) -> str:
    """Return the name in ``text`` after the words of ``pattern`` ("lock %s"), also translated; "": other words."""
    for words in (pattern, _(pattern)) if pattern else ():
        before = words.partition("%s")[0]
        if before and text.casefold().startswith(before.casefold()):
            return text[len(before) :].strip()
    return ""


def _figures(system: Any, status: Any) -> list[str]:
    shown = ((figure.label, figure_text(figure, status)) for figure in system.figures[1:] if figure.label)
    line = ", ".join(f"{label}: {value}" for label, value in shown if value not in ("", "-", "0"))
    explanation = getattr(status, "explanation", "")
    return [line or _("Nothing to do."), *([f"{capfirst(explanation)}."] if explanation else [])]


def _queues(text: str, visible: Set[Any]) -> Iterator[Found]:
    if QueueGroup in visible:
        for group in queue_groups([text]):
            values = {"queues": group.queues, "unowned": group.unowned, "servers": len(group.alive)}
            line = _("%(queues)d queues, %(unowned)d of them unowned; %(servers)d servers.") % values
            yield Found(_("Queue group %s") % group.name, [line], QueueGroup, group.pk)
    name, _hash, number = text.partition(" #")
    for model, columns in ((Queue, {"queue_id": text}), (Server, {"name": name})):
        if model in visible:
            rows = model.objects.using(using_of_queues()).filter(**columns).select_related("queue_group")
            if number.isdecimal() and model is Server:
                rows = rows.filter(pk=int(number[:18]))
            for row in fetch_all(rows.order_by("-pk")[:MAX_FOUND]):
                title = f"{capfirst(row._meta.verbose_name)} {row}"
                yield Found(title, [_("Of queue group %s.") % row.queue_group.name], model, row.pk)


def _locks(text: str, visible: Set[Any]) -> Iterator[Found]:
    for lock in _locks_called(text):
        if lock.kind.model in visible:
            yield Found(capfirst(lock.called), _lock(lock), lock.kind.model, lock.kind.page_key(lock.name))
    if all(kind.model in visible for kind in LockKind):
        held = held_by(processes(text))[:MAX_FOUND]
        related = [(one.kind.model, one.kind.page_key(one.name), one.called) for one in held]
        for who in sorted({one.who for one in held}):
            lines = [_("It holds %s.") % one.called for one in held if one.who == who]
            yield Found(_("Holder %s") % who, lines, related=related)


def _locks_called(text: str) -> list[LockStatus]:
    """Return the locks of this name, or of the kind and name in ``text``, also as alarms write them."""
    text = _name_in(text, ABOUT_LOCKS) or text
    of_kind = [(kind, _name_in(text, LOCK_LABELS[kind.value])) for kind in LockKind]
    return [*lock_named(text), *(lock for kind, name in of_kind if name for lock in lock_named(name, kind))]


def _lock(lock: LockStatus) -> list[str]:
    first = replace(lock, holders=lock.holders[:MAX_FOUND], line=())
    (_state, sentence), *others = lock_facts(first)
    return [sentence, *(capfirst(f"{name}: {value}") for name, value in others)]


def _work(text: str, visible: Set[Any]) -> Iterator[Found]:
    for model in work_models():
        if model in visible:
            container, name = model.key_columns
            where, slash, key = text.partition("/")
            containers = model._meta.get_field(container.removesuffix("_id")).related_model.objects
            places = [where] if slash else fetch_all(containers.values_list("pk", flat=True)[:MAX_CONTAINERS])
            rows = model.objects.filter(**{f"{container}__in": places, name: key if slash else text})
            for row in fetch_all(rows.order_by("-pk")[:MAX_FOUND]):
                lines = [f"{capfirst(row.get_state_display())}.", localized(row.outcome)]
                title = f"{capfirst(model._meta.verbose_name)} {row}"
                yield Found(title, [line for line in lines if line], model, row.pk)


def _operators(text: str, visible: Set[Any]) -> Iterator[Found]:
    if Event not in visible:
        return
    events = Event.objects.using(router.db_for_read(Event))
    hidden = [model._meta.label_lower for model in work_models() if model not in visible]
    first = (events.aggregate(last=Max("pk"))["last"] or 0) - NEWEST  # no index has the operator
    # Not iexact, which follows the collation of the column.
    of_operator = events.annotate(who=Lower("actor")).filter(who=text[:MAX_ACTOR].lower(), pk__gt=first)
    by = of_operator.exclude(pool__in=hidden)
    deeds = fetch_all(by.with_age().order_by("-pk")[:MAX_EVENTS])
    add_sentences(deeds)
    for name in dict.fromkeys(event.actor for event in deeds):
        lines = [f"{ago(event.age)}: {event.sentence}" for event in deeds if event.actor == name]
        yield Found(_("Operator %s") % name, lines, Event, filters={"who": name})
