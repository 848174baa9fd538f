"""How task types, servers and queues stand, and what would move, for people and for programs."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.events import shown
from resourcepool.management.layout import WIDEST, ago, more, padded, plain, table
from resourcepool.queues.labels import spelled
from resourcepool.queues.models import Server, TaskType
from resourcepool.status.durations import duration
from resourcepool.status.queues.forecast import Forecast, Foreseen, Unowned
from resourcepool.status.queues.moves import Moved, QueueStatus, why_unowned
from resourcepool.status.queues.task_types import ServerStatus, TaskTypeStatus

MOST_RUNS = 20  # of queues, in one line of the map
MOST_WHY = 300  # characters

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})")


def task_types_as_text(task_types: Sequence[TaskTypeStatus]) -> list[str]:
    """Return a table of the task types."""
    numbers = [_("queues"), _("servers"), _("asked for"), _("without a server")]
    head = [_("task type"), *numbers, _("generation"), _("last change")]
    rows = [
        (one.name, one.queues, len(one.alive), one.asked_for, one.unowned, one.generation, _last_change(one))
        for one in task_types
    ]
    return table(head, rows, numbers=[*numbers, _("generation")])


def settings_as_text(one: TaskTypeStatus) -> list[str]:
    """Return what a task type is set to, and how it stands."""
    spans = (one.heartbeat_every, one.judge_dead_after, one.reload_every, one.drain_within)
    heartbeat, dead, reload, drain = (f"{span:g} s" for span in spans)
    lines = [
        f"{plain(one.name)}: {TaskType.Strategy(one.strategy).label}",
        _(
            "  heartbeat every %(heartbeat)s, dead after %(dead)s, reload every %(reload)s, drained within %(drain)s"
        )
        % {"heartbeat": heartbeat, "dead": dead, "reload": reload, "drain": drain},
        _("  generation %(number)d, last change: %(change)s")
        % {"number": one.generation, "change": _last_change(one)},
    ]
    if one.is_paused:
        lines.append(_("  PAUSED: nobody begins work on its queues; `resume` ends that"))
    if not one.was_served and not one.servers:
        lines.append(_("  no server has ever been there"))
    return lines


def servers_as_text(servers: Sequence[ServerStatus], limit: int) -> list[str]:
    """Return a table of the servers, and how many more there are."""
    numbers = [_("queues"), _("gives up"), _("awaits"), _("weight"), _("at most")]
    head = [_("server"), _("state"), *numbers, _("labels"), _("heartbeat"), _("registered"), _("no queue for")]
    head.append(_("asked for work"))
    rows = [_server(one) for one in servers[:limit]]
    lines = table([*head, _("process")], rows, numbers=numbers) if rows else [_("No server.")]
    return [*lines, *more(len(rows), len(servers))]


def queue_as_text(queue: QueueStatus, one: TaskTypeStatus) -> list[str]:
    """Return all that is known of a queue, but its parameter; and why nobody has it."""
    span = _("not known for how long") if queue.since is None else _("for %s") % duration(queue.since)
    owner = queue.owner if queue.is_owned else _("%s (dead)") % queue.owner if queue.owner else _("nobody")
    lines = [f"{plain(one.name)} {plain(queue.queue_id)}", "  " + _("server: %s") % f"{plain(owner)}, {span}"]
    if why := why_unowned(queue, one):
        lines.append("  " + _("why nobody: %s") % plain(why, MOST_WHY))
    if queue.asked_for is not None:
        asker = _("to be removed") if queue.is_retiring else queue.requester or _("nobody")
        asked = _("%(server)s, for %(span)s") % {"server": plain(asker), "span": duration(queue.asked_for)}
        lines.append("  " + _("asked for by: %s") % asked)
    labels = plain(spelled(queue.labels), MOST_WHY) or "-"
    return [
        *lines,
        "  " + _("pinned to: %s") % plain(queue.pin or "-"),
        "  " + _("labels it asks for: %s") % labels,
        "  " + _("fence: %d") % queue.fence,
    ]


def map_as_text(
    queues: Sequence[QueueStatus], servers: Sequence[ServerStatus], total: int, limit: int = MOST_RUNS
) -> list[str]:
    """Return for each server, and for nobody, which queues it has, gives up and awaits, ``limit`` runs of each."""
    names = [*(str(one) for one in servers if one.queues or one.awaits), *_strangers(queues, servers), ""]
    found = {plain(name or _("nobody")): "; ".join(_parts(name, queues, limit)) for name in names}
    width = max((len(name) for name, said in found.items() if said), default=0)
    lines = [f"{padded(name, width)}  {said}" for name, said in found.items() if said]
    if total > len(queues):
        text = _("%(count)s more queues are not on this map; --limit %(all)d has them all")
        lines.append(text % {"count": f"{total - len(queues):,}", "all": total})
    return lines


def moves_as_text(moves: Sequence[Moved], limit: int) -> list[str]:
    """Return a table of the latest moves; those of one change and one reason are one line, or a few."""
    head = [_("generation"), _("when"), *_step_head()]
    rows = [
        (first.generation, ago(first.ago), *step)
        for first, step in _alike(moves, lambda one: (one.generation, *_step(one)))
    ][:limit]
    return table(head, rows, numbers=[_("generation")]) if rows else [_("No move yet.")]


def forecast_as_text(forecast: Forecast, limit: int) -> list[str]:
    """Return what would move and why, the totals, and that nothing was changed."""
    steps = [step for _first, step in _alike(forecast.changes, _step)]
    rows = steps[:limit]
    totals = [_("has"), _("would have")]
    shares = [(one.server or _("nobody"), one.before, one.after) for one in forecast.shares]
    count = len(forecast.changes)
    would = ngettext(
        "Would move %(count)s of %(queues)s queues. Nothing was changed.",
        "Would move %(count)s of %(queues)s queues. Nothing was changed.",
        count,
    )
    nobody = [_would_have_nobody(one) for one in forecast.unowned]
    staying = [_would_stay(one) for one in forecast.staying]
    return [
        *(table(_step_head(), rows) if rows else []),
        *more(len(rows), len(steps)),
        *([""] if rows else []),
        *table([_("server"), *totals], shares, numbers=totals),
        *nobody[:limit],
        *staying[:limit],
        would % {"count": f"{count:,}", "queues": f"{forecast.queues:,}"},
    ]


def _would_have_nobody(one: Unowned) -> str:
    text = ngettext(
        "nobody would have %(count)s queue: %(queues)s: %(why)s",
        "nobody would have %(count)s queues: %(queues)s: %(why)s",
        one.count,
    )
    return _of_some(text, one)


def _would_stay(one: Unowned) -> str:
    text = ngettext(
        "%(count)s queue would stay with a server that drains: %(queues)s: %(why)s",
        "%(count)s queues would stay with servers that drain: %(queues)s: %(why)s",
        one.count,
    )
    return _of_some(text, one)


def _of_some(text: str, one: Unowned) -> str:
    is_cut = one.count > len(one.first)  # and then a run would seem to end where it is cut
    queues = ", ".join([*map(plain, one.first if is_cut else runs(one.first)), *(["..."] if is_cut else [])])
    return text % {"count": f"{one.count:,}", "queues": queues, "why": plain(one.why, MOST_WHY)}


def runs(queue_ids: Iterable[str]) -> Iterator[str]:
    """Yield queues as one would type them, what follows each other as one: "0..7", "12", "eu-0..3"."""
    prefix, first, last = "", 0, -1
    plain_one: str | None = None
    for queue_id in queue_ids:
        match = _NUMBERED.fullmatch(queue_id)
        if match and plain_one is None and (match[1], int(match[2])) == (prefix, last + 1) and last >= first:
            last += 1
            continue
        yield from _run(prefix, first, last, plain_one)
        plain_one = None if match else queue_id
        prefix, first = (match[1], int(match[2])) if match else ("", 0)
        last = first if match else -1
    yield from _run(prefix, first, last, plain_one)


def _run(prefix: str, first: int, last: int, plain_one: str | None) -> Iterator[str]:
    if plain_one is not None:
        yield plain_one
    elif last == first:
        yield f"{prefix}{first}"
    elif last > first:
        yield f"{prefix}{first}..{last}"


def task_type_as_json(one: TaskTypeStatus) -> dict[str, Any]:
    """Return a task type and its servers; the keys are documented in docs/queues.md and stay as they are."""
    servers = [
        {**asdict(server), "alive": server.is_alive, "heartbeat": round(server.heartbeat, 3)}
        for server in one.servers
    ]
    return {**asdict(one), "servers": servers}


def forecast_as_json(forecast: Forecast, limit: int) -> dict[str, Any]:
    """Return what would move; see ``task_type_as_json``."""
    found = asdict(forecast)
    return {**found, "changes": found["changes"][:limit], "changes_total": len(forecast.changes)}


def _step_head() -> list[str]:
    return [_("queues"), _("what"), _("from"), _("to"), _("why")]


def _step(one: Moved | Foreseen) -> tuple[str, ...]:
    return str(one.what.label), one.from_server or "-", one.to_server or "-", str(shown(one.reason))


def _alike(
    found: Sequence[Any], kind: Callable[[Any], tuple[Any, ...]]
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield (the first, its queues and step) of those that are of one kind, as many lines as the queues need."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for one in found:
        groups.setdefault(kind(one), []).append(one)
    for group in groups.values():
        ids = sorted((one.queue_id for one in group), key=_in_order)
        for line in _lines(runs(ids)):
            yield group[0], (line, *_step(group[0]))


def _lines(words: Iterable[str]) -> Iterator[str]:
    """Yield words, with commas between them, in lines that fit into a cell."""
    line = ""
    for word in words:
        if line and len(line) + len(word) + 2 > WIDEST:
            yield line
            line = ""
        line = f"{line}, {word}" if line else word
    if line:
        yield line


def _in_order(queue_id: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(queue_id)
    return (match[1], int(match[2]), "") if match else (queue_id, -1, queue_id)


def _last_change(one: TaskTypeStatus) -> str:
    if one.assigned is None:
        return _("never")
    return _("%(ago)s, by %(by)s") % {"ago": ago(one.assigned), "by": plain(one.assigned_by or "-")}


def _server(one: ServerStatus) -> list[object]:
    state = str(Server.State(one.state).label) if one.is_alive else _("dead")
    labels = " ".join(f"{key}={value}" for key, value in sorted(one.labels.items()))
    numbers = [one.queues, one.asked_for, one.awaits, one.weight, "-" if one.limit is None else one.limit]
    idle = "-" if one.idle is None else duration(one.idle)
    asked = "-" if one.stirred is None else ago(one.stirred)
    return [
        one,
        state,
        *numbers,
        labels or "-",
        ago(one.heartbeat),
        ago(one.registered),
        idle,
        asked,
        one.holder,
    ]


def _strangers(queues: Iterable[QueueStatus], servers: Iterable[ServerStatus]) -> list[str]:
    """Return who has queues and is not among the servers any more."""
    known = {str(one) for one in servers}
    return sorted({one.owner for one in queues if one.owner} - known)


def _parts(name: str, queues: Sequence[QueueStatus], limit: int) -> Iterator[str]:
    has = [one.queue_id for one in queues if one.owner == name and one.asked_for is None]
    gives = [one.queue_id for one in queues if one.owner == name and one.asked_for is not None]
    awaits = [one.queue_id for one in queues if name and one.requester == name]
    for ids, text in ((has, "%s"), (gives, _("gives up %s")), (awaits, _("awaits %s"))):
        if ids:
            found = list(runs(ids))
            rest = (
                [_("and %(count)d more (--limit %(all)d)") % {"count": len(found) - limit, "all": len(found)}]
                if len(found) > limit
                else []
            )
            yield text % ", ".join([plain(one) for one in found[:limit]] + rest)
