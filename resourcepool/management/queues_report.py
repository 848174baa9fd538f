"""The state of queue groups, servers and queues, and what would move, as text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from resourcepool.events import localized
from resourcepool.labels import format_labels
from resourcepool.management.layout import ago, more_rows_note, one_line, or_dash
from resourcepool.management.tables import Column, table
from resourcepool.queues.models import QueueGroup, Server
from resourcepool.status.queues.forecast import Forecast, ForecastMove, UnownedQueues
from resourcepool.status.queues.moves import MoveRecord
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.queues.queues import QueueStatus
from resourcepool.status.snapshots import duration

MAX_RANGES = 20  # of queues, in one line of the map
MAX_REASON = 300  # characters

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})")


class Alike(NamedTuple):
    """Moves that differ only in their queues: the first of them, and the queues as one would type them."""

    first: Any
    queues: str


def _last_change(one: QueueGroupStatus) -> str:
    if one.assigned is None:
        return _("never")
    return _("%(ago)s, by %(by)s") % {"ago": ago(one.assigned), "by": one_line(one.assigned_by or "-")}


QUEUE_GROUPS = (
    Column(gettext_lazy("queue group"), lambda one: one.name),
    Column(gettext_lazy("queues"), lambda one: one.queues, is_number=True),
    Column(gettext_lazy("servers"), lambda one: len(one.alive), is_number=True),
    Column(gettext_lazy("asked for"), lambda one: one.asked_for, is_number=True),
    Column(gettext_lazy("without a server"), lambda one: one.unowned, is_number=True),
    Column(gettext_lazy("generation"), lambda one: one.generation, is_number=True),
    Column(gettext_lazy("last change"), _last_change),
)
SERVERS = (
    Column(gettext_lazy("server"), lambda one: one),
    Column(gettext_lazy("state"), lambda one: Server.State(one.state).label if one.is_alive else _("dead")),
    Column(gettext_lazy("queues"), lambda one: one.queues, is_number=True),
    Column(gettext_lazy("gives up"), lambda one: one.asked_for, is_number=True),
    Column(gettext_lazy("awaits"), lambda one: one.awaits, is_number=True),
    Column(gettext_lazy("weight"), lambda one: one.weight, is_number=True),
    Column(gettext_lazy("at most"), lambda one: or_dash(one.limit), is_number=True),
    Column(
        gettext_lazy("labels"), lambda one: " ".join(f"{k}={v}" for k, v in sorted(one.labels.items())) or "-"
    ),
    Column(gettext_lazy("heartbeat"), lambda one: ago(one.heartbeat)),
    Column(gettext_lazy("registered"), lambda one: ago(one.registered)),
    Column(gettext_lazy("no queue for"), lambda one: or_dash(one.idle, duration)),
    Column(gettext_lazy("asked for work"), lambda one: or_dash(one.last_activity, ago)),
    Column(gettext_lazy("process"), lambda one: one.holder),
)
STEPS = (
    Column(gettext_lazy("queues"), lambda one: one.queues, widest=60),
    Column(gettext_lazy("what"), lambda one: one.first.what.label),
    Column(gettext_lazy("from"), lambda one: or_dash(one.first.from_server)),
    Column(gettext_lazy("to"), lambda one: or_dash(one.first.to_server)),
    Column(gettext_lazy("why"), lambda one: localized(one.first.reason)),
)
MOVES = (
    Column(gettext_lazy("generation"), lambda one: one.first.generation, is_number=True),
    Column(gettext_lazy("when"), lambda one: ago(one.first.ago)),
    *STEPS,
)
SHARES = (
    Column(gettext_lazy("server"), lambda one: one.server or _("nobody")),
    Column(gettext_lazy("has"), lambda one: one.before, is_number=True),
    Column(gettext_lazy("would have"), lambda one: one.after, is_number=True),
)
MAP = (Column("", lambda one: one[0]), Column("", lambda one: one[1]))
WOULD_HAVE_NOBODY = ngettext_lazy(
    "nobody would have %(count)s queue: %(queues)s: %(why)s",
    "nobody would have %(count)s queues: %(queues)s: %(why)s",
    "number",
)
WOULD_STAY = ngettext_lazy(
    "%(count)s queue would stay with a server that drains: %(queues)s: %(why)s",
    "%(count)s queues would stay with servers that drain: %(queues)s: %(why)s",
    "number",
)


def settings_as_text(one: QueueGroupStatus) -> list[str]:
    spans = {"heartbeat": one.heartbeat_every, "dead": one.judge_dead_after}
    spans |= {"reload": one.reload_every, "drain": one.handover_timeout}
    text = _(
        "  heartbeat every %(heartbeat)s, dead after %(dead)s, reload every %(reload)s, drained within %(drain)s"
    )
    change = {"number": one.generation, "change": _last_change(one)}
    lines = [
        f"{one_line(one.name)}: {QueueGroup.Strategy(one.strategy).label}",
        text % {name: f"{seconds:g} s" for name, seconds in spans.items()},
        _("  generation %(number)d, last change: %(change)s") % change,
    ]
    if one.is_paused:
        lines.append(_("  PAUSED: nobody begins work on its queues; `resume` ends that"))
    if not one.was_served and not one.servers:
        lines.append(_("  no server has ever been there"))
    return lines


def servers_as_text(servers: Sequence[ServerStatus], limit: int) -> list[Any]:
    if not servers:
        return [_("No server.")]
    return [table(servers[:limit], SERVERS), *more_rows_note(limit, len(servers))]


def queue_as_text(queue: QueueStatus, one: QueueGroupStatus) -> Iterator[str]:
    """Yield all that is known of a queue, but its parameter; and why nobody has it."""
    yield f"{one_line(one.name)} {one_line(queue.queue_id)}"
    span = _("not known for how long") if queue.since is None else _("for %s") % duration(queue.since)
    owner = queue.owner if queue.is_owned else _("%s (dead)") % queue.owner if queue.owner else _("nobody")
    yield "  " + _("server: %s") % f"{one_line(owner)}, {span}"
    if queue.why_unowned:
        yield "  " + _("why nobody: %s") % one_line(queue.why_unowned, MAX_REASON)
    if queue.asked_for is not None:
        asker = _("to be removed") if queue.is_retiring else queue.requester or _("nobody")
        asked = _("%(server)s, for %(span)s") % {"server": one_line(asker), "span": duration(queue.asked_for)}
        yield "  " + _("asked for by: %s") % asked
    yield "  " + _("pinned to: %s") % one_line(queue.pin or "-")
    yield "  " + _("labels it asks for: %s") % (one_line(format_labels(queue.labels), MAX_REASON) or "-")
    yield "  " + _("fence: %d") % queue.fence


def map_as_text(
    queues: Sequence[QueueStatus], servers: Sequence[ServerStatus], total: int, limit: int = MAX_RANGES
) -> Iterator[Any]:
    """Yield for each server, and for nobody, which queues it has, gives up and awaits, ``limit`` runs of each."""
    known = [str(one) for one in servers]
    names = [*known, *sorted({one.owner for one in queues if one.owner} - {*known}), ""]
    found = [(name or _("nobody"), "; ".join(_parts(name, queues, limit))) for name in names]
    if lines := [(name, said) for name, said in found if said]:
        yield ""
        yield table(lines, MAP, has_head=False)
    if total > len(queues):
        text = _("%(count)s more queues are not on this map; --limit %(all)d has them all")
        yield text % {"count": f"{total - len(queues):,}", "all": total}


def moves_as_text(moves: Sequence[MoveRecord], limit: int) -> Any:
    """Return a table of the latest moves; those of one change and one reason are one row."""
    rows = _alike(moves, lambda one: (one.generation, *_kind(one)))[:limit]
    return table(rows, MOVES) if rows else _("No move yet.")


def forecast_as_text(forecast: Forecast, limit: int) -> Iterator[Any]:
    """Yield what would move and why, the totals, and that nothing was changed."""
    steps = _alike(forecast.changes, _kind)
    if steps:
        yield from [table(steps[:limit], STEPS), *more_rows_note(limit, len(steps)), ""]
    yield table(forecast.shares, SHARES)
    yield from (_of_some(WOULD_HAVE_NOBODY, one) for one in forecast.unowned[:limit])
    yield from (_of_some(WOULD_STAY, one) for one in forecast.staying[:limit])
    counted = {"count": f"{len(forecast.changes):,}", "queues": f"{forecast.queues:,}"}
    yield _("Would move %(count)s of %(queues)s queues. Nothing was changed.") % counted


def _of_some(text: Any, one: UnownedQueues) -> str:
    is_cut = one.count > len(one.first)  # and then a run would seem to end where it is cut
    queues = ", ".join([*map(one_line, one.first if is_cut else runs(one.first)), *(["..."] if is_cut else [])])
    told = {
        "number": one.count,
        "count": f"{one.count:,}",
        "queues": queues,
        "why": one_line(one.why, MAX_REASON),
    }
    return str(text % told)


def runs(queue_ids: Iterable[str]) -> Iterator[str]:
    """Yield queues as one would type them, consecutive ones as one: "0..7", "12", "eu-0..3"."""
    for (prefix, step), group in groupby(enumerate(queue_ids), _place):
        ids = [queue_id for _at, queue_id in group]
        if step is None or len(ids) == 1:
            yield from ids
        else:
            yield f"{ids[0]}..{ids[-1].removeprefix(prefix)}"


def _place(listed: tuple[int, str]) -> tuple[str, int | None]:
    """Return what consecutive queues have in common, from the place of one in a list, and its id."""
    at, queue_id = listed
    match = _NUMBERED.fullmatch(queue_id)
    return (match[1], int(match[2]) - at) if match else ("", None)


def _kind(one: MoveRecord | ForecastMove) -> tuple[str, ...]:
    return one.what, one.from_server, one.to_server, one.reason


def _alike(found: Sequence[Any], kind: Callable[[Any], tuple[Any, ...]]) -> list[Alike]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for one in found:
        groups.setdefault(kind(one), []).append(one)
    return [
        Alike(group[0], ", ".join(runs(sorted((one.queue_id for one in group), key=_in_order))))
        for group in groups.values()
    ]


def _in_order(queue_id: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(queue_id)
    return (match[1], int(match[2]), "") if match else (queue_id, -1, queue_id)


def _parts(name: str, queues: Sequence[QueueStatus], limit: int) -> Iterator[str]:
    """Yield the runs of queues that a server has, gives up and awaits."""
    has = [one.queue_id for one in queues if one.owner == name and one.asked_for is None]
    gives = [one.queue_id for one in queues if one.owner == name and one.asked_for is not None]
    awaits = [one.queue_id for one in queues if name and one.requester == name]
    for ids, text in ((has, "%s"), (gives, _("gives up %s")), (awaits, _("awaits %s"))):
        found = list(runs(ids))
        listed = [one_line(one) for one in found[:limit]]
        if len(found) > limit:
            numbers = {"count": len(found) - limit, "all": len(found)}
            listed.append(_("and %(count)d more (--limit %(all)d)") % numbers)
        if listed:
            yield text % ", ".join(listed)
