"""The status of queue groups, servers and queues, and forecasts of moves, as text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from resourcepool.events import localized
from resourcepool.management.layout import FittedTable, more_rows_note, name_value_lines, one_line, or_dash
from resourcepool.queues.models import QueueGroup
from resourcepool.status.queues.forecast import Forecast, ForecastMove
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.queues.queues import MoveRecord, QueueStatus
from resourcepool.status.queues.system import badge_of_server
from resourcepool.status.system import age, count, seconds, text, whole
from resourcepool.status.times import ago, duration
from resourcepool.text import format_labels
from resourcepool.translation import gettext as _, gettext_lazy

MAX_RANGES = 20  # of queues in status line of the map
MAX_REASON = 300  # characters

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})")


class MoveRow(NamedTuple):
    """Moves that differ only in their queues: the first of them, and the queues as ranges."""

    first: Any
    queues: str


SERVERS = (
    count(gettext_lazy("queues"), "queues"),
    count(gettext_lazy("hands over"), "asked_for"),
    count(gettext_lazy("awaits"), "awaits"),
    whole(gettext_lazy("weight"), "weight"),
    whole(gettext_lazy("limit"), "limit"),
    text(gettext_lazy("labels"), lambda row: format_labels(row.labels)),
    age(gettext_lazy("heartbeat"), "heartbeat"),
    age(gettext_lazy("registered"), "registered"),
    seconds(gettext_lazy("no queue for"), "idle"),
    text(gettext_lazy("asked for work"), lambda row: or_dash(row.last_activity, ago)),
    text(gettext_lazy("process"), "holder"),
)
STEPS = (
    text(gettext_lazy("queues"), "queues", widest=60),
    text(gettext_lazy("action"), "first.what.label"),
    text(gettext_lazy("from"), "first.from_server"),
    text(gettext_lazy("to"), "first.to_server"),
    text(gettext_lazy("reason"), lambda row: localized(row.first.reason)),
)
MOVES = (count(gettext_lazy("generation"), "first.generation"), age(gettext_lazy("when"), "first.ago"), *STEPS)
SHARES = (
    text(gettext_lazy("server"), lambda row: row.server or _("unowned")),
    count(gettext_lazy("has"), "before"),
    count(gettext_lazy("would have"), "after"),
)


def settings_as_text(status: QueueGroupStatus) -> list[str]:
    spans = {"heartbeat": status.heartbeat_every, "dead": status.judge_dead_after}
    spans |= {"reload": status.reload_every, "timeout": status.handover_timeout}
    text = _(
        "  heartbeat every %(heartbeat)s, presumed dead after %(dead)s, reload every %(reload)s, hand-over timeout"
        " %(timeout)s"
    )
    change = {"number": status.generation, "change": one_line(status.last_change, None)}
    lines = [
        f"{one_line(status.name)}: {QueueGroup.Strategy(status.strategy).label}",
        text % {name: f"{seconds:g} s" for name, seconds in spans.items()},
        _("  generation %(number)d, last change: %(change)s") % change,
    ]
    if status.is_paused:
        lines.append(_("  PAUSED: no work starts on its queues; `resume` ends the pause"))
    if not status.was_served and not status.servers:
        lines.append(_("  no server has ever run"))
    return lines


def servers_as_text(status: QueueGroupStatus, limit: int) -> list[Any]:
    servers = status.servers
    if not servers:
        return [_("No server.")]
    named = text(_("server"), str), text(_("state"), lambda row: badge_of_server(status, row).label)
    return [FittedTable(servers[:limit], [*named, *SERVERS]), *more_rows_note(limit, len(servers))]


def queue_as_text(queue: QueueStatus, status: QueueGroupStatus) -> Iterator[str]:
    """Yield the details of a queue, without its parameter."""
    yield f"{one_line(status.name)} {one_line(queue.queue_id)}"
    span = _("since when is unknown") if queue.since is None else _("for %s") % duration(queue.since)
    owner = (
        queue.owner if queue.is_owned else _("%s (presumed dead)") % queue.owner if queue.owner else _("none")
    )
    yield "  " + _("server: %s") % f"{one_line(owner)}, {span}"
    if queue.why_unowned:
        yield "  " + _("why unowned: %s") % one_line(queue.why_unowned, MAX_REASON)
    if queue.asked_for is not None:
        requester = _("to be removed") if queue.is_retiring else queue.requester or _("none")
        values = {"server": one_line(requester), "span": duration(queue.asked_for)}
        yield "  " + _("requested by: %s") % (_("%(server)s, for %(span)s") % values)
    yield "  " + _("pinned to: %s") % one_line(queue.pin or "-")
    yield "  " + _("required labels: %s") % (one_line(format_labels(queue.labels), MAX_REASON) or "-")
    yield "  " + _("fence: %d") % queue.fence


def map_as_text(
    queues: Sequence[QueueStatus], servers: Sequence[ServerStatus], total: int, limit: int = MAX_RANGES
) -> Iterator[Any]:
    """Yield which queues each server has, hands over and awaits, then unowned queues; ``limit`` ranges of each."""
    running = [str(server) for server in servers]
    names = [*running, *sorted({queue.owner for queue in queues if queue.owner} - {*running}), ""]
    ranges_of = {name or _("unowned"): "; ".join(_ranges_of(name, queues, limit)) for name in names}
    if rows := [(name, parts) for name, parts in ranges_of.items() if parts]:
        yield ""
        yield name_value_lines(rows)
    if total > len(queues):
        text = _("%(count)s more queues are not on this map; --limit %(all)d shows all")
        yield text % {"count": f"{total - len(queues):,}", "all": total}


def moves_as_text(moves: Sequence[MoveRecord], limit: int) -> Any:
    """Return a table of the latest moves; a row has all moves of one change for one reason."""
    rows = _group_moves(moves, lambda move: (move.generation, *_kind(move)))[:limit]
    return FittedTable(rows, MOVES) if rows else _("No moves yet.")


def forecast_as_text(forecast: Forecast, limit: int) -> Iterator[Any]:
    """Yield the moves with reasons, the totals, and that nothing was changed."""
    steps = _group_moves(forecast.changes, _kind)
    if steps:
        yield from [FittedTable(steps[:limit], STEPS), *more_rows_note(limit, len(steps)), ""]
    yield FittedTable(forecast.shares, SHARES)
    counts = {"count": f"{len(forecast.changes):,}", "queues": f"{forecast.queues:,}"}
    yield _("%(count)s of %(queues)s queues would move. Nothing was changed.") % counts


def ranges(queue_ids: Iterable[str]) -> Iterator[str]:
    """Yield queues as typed in commands, consecutive ones as ranges: "0..7", "12", "eu-0..3"."""
    for (prefix, offset), group in groupby(enumerate(queue_ids), _range_key):
        ids = [queue_id for _index, queue_id in group]
        if offset is None or len(ids) == 1:
            yield from ids
        else:
            yield f"{ids[0]}..{ids[-1].removeprefix(prefix)}"


def _range_key(item: tuple[int, str]) -> tuple[str, int | None]:
    """Return what consecutive queues have in common: the prefix, and the number less the index in the list."""
    index, queue_id = item
    match = _NUMBERED.fullmatch(queue_id)
    return (match[1], int(match[2]) - index) if match else ("", None)


def _kind(move: MoveRecord | ForecastMove) -> tuple[str, ...]:
    return move.what, move.from_server, move.to_server, move.reason


def _group_moves(moves: Sequence[Any], kind: Callable[[Any], tuple[Any, ...]]) -> list[MoveRow]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for move in moves:
        groups.setdefault(kind(move), []).append(move)
    return [
        MoveRow(group[0], ", ".join(ranges(sorted((move.queue_id for move in group), key=_sort_key))))
        for group in groups.values()
    ]


def _sort_key(queue_id: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(queue_id)
    return (match[1], int(match[2]), "") if match else (queue_id, -1, queue_id)


def _ranges_of(name: str, queues: Sequence[QueueStatus], limit: int) -> Iterator[str]:
    """Yield the ranges of queues that a server has, hands over and awaits."""
    owned = [queue.queue_id for queue in queues if queue.owner == name and queue.asked_for is None]
    requested = [queue.queue_id for queue in queues if queue.owner == name and queue.asked_for is not None]
    awaited = [queue.queue_id for queue in queues if name and queue.requester == name]
    for ids, said in ((owned, "%s"), (requested, _("hands over %s")), (awaited, _("awaits %s"))):
        all_ranges = list(ranges(ids))
        parts = [one_line(each) for each in all_ranges[:limit]]
        if len(all_ranges) > limit:
            numbers = {"count": len(all_ranges) - limit, "all": len(all_ranges)}
            parts.append(_("and %(count)d more (--limit %(all)d)") % numbers)
        if parts:
            yield said % ", ".join(parts)
