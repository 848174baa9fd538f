"""What a resource is doing, in sentences."""

import datetime
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.admin.countdown import countdown
from resourcepool.elections.models import election_models
from resourcepool.events import shown
from resourcepool.resources.state import State, Status, Verdict, standing_of
from resourcepool.signals import What
from resourcepool.status.durations import duration
from resourcepool.status.holders import origin
from resourcepool.status.renewal import renewal

HELD = (State.LEASED, State.DRAINING)
AWAY = (State.DRAINING, State.OUT, State.RESERVED, State.RETIRED)
# What is called otherwise where the lease is the term of a leader.
OF_ELECTIONS = {What.ACQUIRED: gettext_lazy("elected"), What.RELEASED: gettext_lazy("resigned")}


def named(resource: Any) -> str:
    """Return "17: http://..", because logs, events and commands speak of a resource by its key."""
    key, name = str(resource.pk), str(resource)
    return name if key == name else f"{key}: {name}"


def titled(resource: Any) -> str:
    """Return "Proxy 17: http://.."."""
    return f"{capfirst(resource._meta.verbose_name)} {named(resource)}"


def sentences(resource: Any, state: State, now: datetime.datetime, begun: Any) -> list[str]:
    """Return what is to be known about ``resource``.

    Args:
        now: the database's clock.
        begun: the event of the acquisition of the running lease; None if the history knows none.
    """
    said: list[str] = []
    if state in HELD:
        said += _of_the_lease(resource, now, begun)
    elif state == State.FREE:
        said += _of_a_free_one(resource)
    elif state in (State.COOLING, State.QUARANTINED):
        text, over = _("It is handed out again in %s."), _("Its time is over: reload this page.")
        ends = resource.busy_before if resource.until is None else max(resource.busy_before, resource.until)
        said.append(countdown(left(ends, now), text, over))
    if state == State.DRAINING:
        said += _afterwards(resource)
    if state in AWAY:
        said.append(_until(resource, state))
    if reason := standing_of(resource, now).reason:
        said.append(_("Why: %s") % shown(reason))
    if resource.strikes:
        said.append(_("Found bad %d times in a row.") % resource.strikes)
    return [*said, _of_the_check(resource, now)]


def _of_the_lease(resource: Any, now: datetime.datetime, begun: Any) -> Iterator[str]:
    yield _("Held by %s.") % resource.holder
    host, pid = (begun.host, begun.pid) if begun and begun.host else origin(resource.holder)
    if host:
        yield _("On host %(host)s, process %(pid)d.") % {"host": host, "pid": pid}
    if begun:
        since = {"at": moment(begun.at), "ago": duration((now - begun.at).total_seconds())}
        yield _("Since %(at)s (%(ago)s ago).") % since
    else:
        yield _("Since when is not known: the history does not tell.")
    expires_in = left(resource.busy_before, now)
    if last := renewal(begun.ttl if begun else None, expires_in):
        yield _("Last renewed %s.") % last
    text = _("It runs out in %s unless its holder renews it.")
    over = _("By now it has run out, or its holder has renewed it: reload this page to see which.")
    yield countdown(expires_in, text, over)


def of_the_leak(event: Any) -> str:
    """Return what one event about a leak tells: that it was reported, or that somebody knows of it."""
    said = {"at": moment(event.at), "why": shown(event.reason), "who": event.actor}
    if event.what == What.ACKNOWLEDGED:
        return _("The leak was acknowledged by %(who)s at %(at)s: %(why)s") % said
    return _("Reported as leaked at %(at)s: %(why)s") % said


def _of_a_free_one(resource: Any) -> Iterator[str]:
    yield _("Whoever asks next may get it.")
    if resource.holder:
        yield _("Its last lease, of %s, ran out without being released.") % resource.holder


def _afterwards(resource: Any) -> Iterator[str]:
    if resource.status == Status.RESERVED:
        yield _("It is reserved as soon as its lease ends.")
    elif resource.status == Status.QUARANTINED:
        yield _("It is quarantined as soon as its lease ends.")
    elif resource.status == Status.RETIRED:
        yield _("It is retired as soon as its lease ends.")


def after_its_lease(resource: Any) -> str:
    """Return what a draining resource is after its lease, as it fits into a table; "": out of service."""
    texts = {
        Status.RESERVED: _("reserved after its lease"),
        Status.QUARANTINED: _("quarantined after its lease"),
        Status.RETIRED: _("retired after its lease"),
    }
    return texts.get(resource.status, "")


def _until(resource: Any, state: State) -> str:
    if state == State.RETIRED or resource.until is None:
        return _("Handed out no more until somebody returns it to service.")
    return _("Handed out no more until %s.") % moment(resource.until)


def _of_the_check(resource: Any, now: datetime.datetime) -> str:
    if resource.checked_at is None:
        return _("Never checked.")
    ago = duration((now - resource.checked_at).total_seconds())
    verdict = Verdict(resource.verdict).label if resource.verdict in Verdict.values else "?"
    return _("Last check: %(verdict)s, %(ago)s ago.") % {"verdict": verdict, "ago": ago}


def left(end: datetime.datetime, now: datetime.datetime) -> float:
    """Return how many seconds it is until ``end``."""
    return max(0.0, (end - now).total_seconds())


def lasted(seconds: float) -> str:
    """Return how long something took, for people; short times with their fraction."""
    return duration(seconds) if seconds >= 10 else _("%.2f s") % seconds


def happened(event: Any) -> str:
    """Return what an event tells: "released", or "acquired and released" where it tells of the whole lease.

    Of an election: "resigned", or "elected and resigned".
    """
    what = str(event.get_what_display())
    if any(event.pool == model._meta.label_lower for model in election_models()):
        what = str(OF_ELECTIONS.get(event.what, what))
        return _("elected and %s") % what if event.is_whole else what
    return _("acquired and %s") % what if event.is_whole else what


def moment(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07", as logs have it, in the time zone that ``zone`` tells."""
    return f"{_local(at):%Y-%m-%d %H:%M:%S}"


def short_moment(at: datetime.datetime, now: datetime.datetime) -> str:
    """Return a moment as it fits into a table: of the day that it is ``now`` the time alone."""
    at, now = _local(at), _local(now)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else moment(at)


def zone() -> str:
    """Return in which zone moments are shown, in a sentence; "" where the project does without zones."""
    if not settings.USE_TZ:
        return ""
    offset = timezone.localtime().isoformat()[-6:]
    return _("Times are shown in %(name)s (%(offset)s).") % {
        "name": timezone.get_current_timezone_name(),
        "offset": offset,
    }


def _local(at: datetime.datetime) -> datetime.datetime:
    return timezone.localtime(at) if timezone.is_aware(at) else at


def column(field: str, title: Any, spell: Callable[[Any], str]) -> Any:
    """Return a column of a list, or a line of a page: what ``spell`` makes of the field, unless it is None."""

    def spelled(row: Any) -> str:
        value = getattr(row, field)
        return "" if value is None else spell(value)

    spelled.__name__ = field  # what the page calls it by
    return admin.display(description=title)(spelled)


moments, spans = partial(column, spell=moment), partial(column, spell=lasted)
reasons = partial(column, spell=shown)  # in the reader's language, if it is one of the program's
