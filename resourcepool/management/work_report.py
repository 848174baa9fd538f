"""The status of streams, dispensers, topics, channels and elections, and their tasks and timers, as text."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from resourcepool.elections.models import Election as ElectionRow
from resourcepool.events import localized
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.management.layout import one_line, or_dash
from resourcepool.management.tables import Column, counts, table
from resourcepool.status.times import ago, duration
from resourcepool.status.work.pages import WorkPage
from resourcepool.status.work.schedules import recurrence
from resourcepool.taskqueue.dispenser.models import Dispenser, DispenserTask
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.taskqueue.timers.models import Timer, Topic
from resourcepool.translation import gettext as _
from resourcepool.translation import gettext_lazy, gettext_noop

STREAMS = (
    Column(gettext_lazy("stream"), lambda one: one.name),
    Column(gettext_lazy("leader"), lambda one: or_dash(one.leader)),
    Column(gettext_lazy("leading for"), lambda one: or_dash(one.since, duration)),
    counts(gettext_lazy("standbys"), lambda one: one.standbys),
    counts(gettext_lazy("unfinished"), lambda one: one.depth),
    Column(gettext_lazy("oldest"), lambda one: or_dash(one.first and one.first.age, duration)),
    counts(gettext_lazy("done/min"), lambda one: one.done),
    counts(gettext_lazy("failed/min"), lambda one: one.failed),
    counts(gettext_lazy("dead-letter"), lambda one: one.dead),
)
DISPENSERS = (
    Column(gettext_lazy("dispenser"), lambda one: one.name),
    counts(gettext_lazy("ready"), lambda one: one.depth),
    Column(gettext_lazy("oldest"), lambda one: or_dash(one.oldest, duration)),
    counts(gettext_lazy("assigned"), lambda one: one.assigned),
    counts(gettext_lazy("buckets"), lambda one: one.live),
    counts(gettext_lazy("expired"), lambda one: one.expired),
    counts(gettext_lazy("done/min"), lambda one: one.done),
    counts(gettext_lazy("failed"), lambda one: one.failed),
    Column(gettext_lazy("last rebuild"), lambda one: ago(one.rebuilt)),
)
TOPICS = (
    Column(gettext_lazy("topic"), lambda one: one.name),
    counts(gettext_lazy("nodes"), lambda one: len(one.nodes)),
    counts(gettext_lazy("pending"), lambda one: one.pending),
    Column(gettext_lazy("next in"), lambda one: or_dash(one.next_in, duration)),
    counts(gettext_lazy("due"), lambda one: one.due),
    Column(gettext_lazy("late by"), lambda one: or_dash(one.late or None, duration)),
    counts(gettext_lazy("running"), lambda one: one.running),
    counts(gettext_lazy("done/min"), lambda one: one.done),
    counts(gettext_lazy("failed/min"), lambda one: one.failed),
    counts(gettext_lazy("dead-letter"), lambda one: one.dead),
)
CHANNELS = (
    Column(gettext_lazy("channel"), lambda one: one.name),
    counts(gettext_lazy("last"), lambda one: one.last),
    counts(gettext_lazy("kept"), lambda one: one.kept),
    counts(gettext_lazy("published/min"), lambda one: one.published),
    counts(gettext_lazy("unnamed"), lambda one: one.listeners),
    counts(gettext_lazy("durable"), lambda one: len(one.subscriptions)),
    counts(gettext_lazy("unread"), lambda one: one.unread),
)
SUBSCRIPTIONS = (
    Column(gettext_lazy("subscription"), lambda one: one.name),
    counts(gettext_lazy("cursor"), lambda one: one.cursor),
    counts(gettext_lazy("unread"), lambda one: one.unread),
    Column(gettext_lazy("oldest unread"), lambda one: or_dash(one.behind or None, duration)),
    counts(gettext_lazy("removed"), lambda one: one.lost),
    counts(gettext_lazy("missed"), lambda one: one.missed),
    Column(gettext_lazy("read by"), lambda one: or_dash(one.holder)),
)
ELECTIONS = (
    Column(gettext_lazy("election"), lambda one: one.name),
    Column(gettext_lazy("leader"), lambda one: or_dash(one.leader)),
    counts(gettext_lazy("term"), lambda one: one.term),
    Column(gettext_lazy("leading for"), lambda one: or_dash(one.since, duration)),
    Column(gettext_lazy("expires in"), lambda one: or_dash(one.expires_in, duration)),
    counts(gettext_lazy("standbys"), lambda one: one.standbys),
)
PLACES = {
    Stream: (
        STREAMS,
        gettext_noop("No streams yet; add one: `manage.py resourcepool_streams add NAME`"),
    ),
    Dispenser: (DISPENSERS, gettext_noop("No dispensers yet: a dispenser is created on first use.")),
    Topic: (TOPICS, gettext_noop("No timers or topics yet: the first timer creates its topic.")),
    ChannelRow: (CHANNELS, gettext_noop("No channels yet: the first message creates its channel.")),
    ElectionRow: (ELECTIONS, gettext_noop("No elections yet: the first campaign creates its election.")),
}


def _when(left: float | None) -> str:
    """Return "in 5 min" or "due for 5 min"; ``left``: the seconds until then."""
    if left is None:
        return "-"
    return _("in %s") % duration(left) if left > 0 else _("due for %s") % duration(-left)


def _state(model: Any) -> Column:
    labels = dict(model.State.choices)
    return Column(gettext_lazy("state"), lambda one: labels.get(one.state, one.state))


OUTCOME = Column(gettext_lazy("outcome"), lambda one: or_dash(one_line(localized(one.outcome))))
HOLDER = Column(gettext_lazy("holder"), lambda one: or_dash(one.holder))
ATTEMPTS = counts(gettext_lazy("attempts"), lambda one: one.attempts)
WORK = {
    Task: (
        Column(gettext_lazy("key"), lambda one: one.key),
        Column(gettext_lazy("type"), lambda one: one.type),
        _state(Task),
        ATTEMPTS,
        Column(gettext_lazy("submitted"), lambda one: ago(one.age)),
        Column(gettext_lazy("next attempt"), lambda one: _when(one.waits)),
        HOLDER,
        OUTCOME,
    ),
    DispenserTask: (
        Column(gettext_lazy("key"), lambda one: one.key),
        Column(gettext_lazy("score"), lambda one: f"{one.score:g}", is_number=True),
        _state(DispenserTask),
        Column(gettext_lazy("worker"), lambda one: or_dash(one.worker)),
        counts(gettext_lazy("expirations"), lambda one: one.expirations),
        Column(gettext_lazy("added"), lambda one: ago(one.age)),
        OUTCOME,
    ),
    Timer: (
        Column(gettext_lazy("timer"), lambda one: one.name),
        _state(Timer),
        Column(gettext_lazy("fires"), lambda one: _when(one.due_in)),
        Column(gettext_lazy("schedule"), lambda one: or_dash(recurrence(one.schedule))),
        ATTEMPTS,
        HOLDER,
        OUTCOME,
    ),
}


def statuses_as_text(model: Any, statuses: Sequence[Any]) -> list[Any]:
    """Return a table of streams, dispensers, topics, channels or elections, and why nothing happens in them."""
    columns, none_yet = PLACES[model]
    if not statuses:
        return [_(none_yet)]
    parts: list[Any] = [table(statuses, columns)]
    if len(statuses) == 1 and getattr(statuses[0], "subscriptions", None):
        parts += ["", table(statuses[0].subscriptions, SUBSCRIPTIONS)]
    reasons = [one_line(f"{one.name}: {one.explanation}", None) for one in statuses if one.explanation]
    return [*parts, *(["", *reasons] if reasons else [])]


def work_as_text(model: Any, page: WorkPage, words: str) -> list[Any]:
    """Return a table of tasks or timers; ``words``: the command's arguments that show this page."""
    shown = table(page.work, WORK[model]) if page.work else _("There are none.")
    return [shown, *next_page_hint(words, page.after)]


def next_page_hint(words: str, after: str) -> Iterator[str]:
    """Yield the arguments for the next page, if there is one; ``words``: the arguments of this page."""
    if after:
        yield ""
        yield _("There are more: %s") % f"{words} --after {shlex.quote(one_line(after, None))}"
