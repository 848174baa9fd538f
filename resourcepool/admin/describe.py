"""What a resource is doing, in sentences."""

import datetime
from collections.abc import Iterator
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.admin.columns import countdown, format_datetime
from resourcepool.elections.models import election_models
from resourcepool.events import localized
from resourcepool.resources.state import State, Status, Verdict, state_details
from resourcepool.signals import EventKind
from resourcepool.status.holders import host_and_pid, renewal
from resourcepool.status.snapshots import duration

HELD = (State.LEASED, State.DRAINING)
AWAY = (State.DRAINING, State.OUT, State.RESERVED, State.RETIRED)
# Of a draining resource: what its lease is followed by, in a sentence and in a table; otherwise, out of service.
AFTERWARDS = {
    Status.RESERVED: gettext_lazy("It is reserved as soon as its lease ends."),
    Status.QUARANTINED: gettext_lazy("It is quarantined as soon as its lease ends."),
    Status.RETIRED: gettext_lazy("It is retired as soon as its lease ends."),
}
AFTER_ITS_LEASE = {
    Status.RESERVED: gettext_lazy("reserved after its lease"),
    Status.QUARANTINED: gettext_lazy("quarantined after its lease"),
    Status.RETIRED: gettext_lazy("retired after its lease"),
}
# Events of leases that are the terms of a leader have names of their own.
OF_ELECTIONS = {EventKind.ACQUIRED: gettext_lazy("elected"), EventKind.RELEASED: gettext_lazy("resigned")}


def named(resource: Any) -> str:
    """Return "17: http://..", because logs, events and commands speak of a resource by its key."""
    key, name = str(resource.pk), str(resource)
    return name if key == name else f"{key}: {name}"


def title_of(resource: Any) -> str:
    """Return "Proxy 17: http://.."."""
    return f"{capfirst(resource._meta.verbose_name)} {named(resource)}"


def sentences(resource: Any, state: State, now: datetime.datetime, begun: Any) -> list[str]:
    """Return what there is to know about ``resource``.

    Args:
        now: the database's clock.
        begun: the event of the acquisition of the running lease; None if it is not in the history.
    """
    said: list[str] = []
    if state in HELD:
        said += _of_the_lease(resource, now, begun)
    elif state == State.FREE:
        said.append(_("Whoever asks next may get it."))
        if resource.holder:
            said.append(_("Its last lease, of %s, ran out without being released.") % resource.holder)
    elif state in (State.COOLING, State.QUARANTINED):
        text, over = _("It is handed out again in %s."), _("Its time is over: reload this page.")
        ends = resource.busy_before if resource.until is None else max(resource.busy_before, resource.until)
        said.append(countdown((ends - now).total_seconds(), text, over))
    if state == State.DRAINING and resource.status in AFTERWARDS:
        said.append(str(AFTERWARDS[resource.status]))
    if state in AWAY:
        said.append(_until(resource, state))
    if reason := state_details(resource, now).reason:
        said.append(_("Why: %s") % localized(reason))
    if resource.strikes:
        said.append(_("Found bad %d times in a row.") % resource.strikes)
    return [*said, _of_the_check(resource, now)]


def _of_the_lease(resource: Any, now: datetime.datetime, begun: Any) -> Iterator[str]:
    yield _("Held by %s.") % resource.holder
    host, pid = (begun.host, begun.pid) if begun and begun.host else host_and_pid(resource.holder)
    if host:
        yield _("On host %(host)s, process %(pid)d.") % {"host": host, "pid": pid}
    if begun:
        since = {"at": format_datetime(begun.at), "ago": duration((now - begun.at).total_seconds())}
        yield _("Since %(at)s (%(ago)s ago).") % since
    else:
        yield _("Since when is not known: the history does not tell.")
    expires_in = max(0.0, (resource.busy_before - now).total_seconds())
    if last := renewal(begun.ttl if begun else None, expires_in):
        yield _("Last renewed %s.") % last
    text = _("It runs out in %s unless its holder renews it.")
    over = _("By now it has run out, or its holder has renewed it: reload this page to see which.")
    yield countdown(expires_in, text, over)


def of_the_leak(event: Any) -> str:
    """Return what an event about a leak says: reported, or acknowledged."""
    said = {"at": format_datetime(event.at), "why": localized(event.reason), "who": event.actor}
    if event.what == EventKind.ACKNOWLEDGED:
        return _("The leak was acknowledged by %(who)s at %(at)s: %(why)s") % said
    return _("Reported as leaked at %(at)s: %(why)s") % said


def _until(resource: Any, state: State) -> str:
    if state == State.RETIRED or resource.until is None:
        return _("Handed out no more until somebody returns it to service.")
    return _("Handed out no more until %s.") % format_datetime(resource.until)


def _of_the_check(resource: Any, now: datetime.datetime) -> str:
    if resource.checked_at is None:
        return _("Never checked.")
    ago = duration((now - resource.checked_at).total_seconds())
    verdict = Verdict(resource.verdict).label if resource.verdict in Verdict.values else "?"
    return _("Last check: %(verdict)s, %(ago)s ago.") % {"verdict": verdict, "ago": ago}


def happened(event: Any) -> str:
    """Return "released", or "acquired and released" if the event stands for the whole lease.

    Of an election: "resigned", or "elected and resigned".
    """
    what = str(event.get_what_display())
    if any(event.pool == model._meta.label_lower for model in election_models()):
        what = str(OF_ELECTIONS.get(event.what, what))
        return _("elected and %s") % what if event.is_whole else what
    return _("acquired and %s") % what if event.is_whole else what
