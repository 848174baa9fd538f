"""Describe the state of a resource and its events in sentences."""

import datetime
from collections.abc import Iterator
from typing import Any

from django.utils.text import capfirst

from resourcepool.admin.columns import countdown
from resourcepool.events import localized
from resourcepool.resources.state import State, Status, Verdict, state_details
from resourcepool.signals import EventKind
from resourcepool.status.resources.holders import host_and_pid, renewal
from resourcepool.status.times import duration, format_datetime, precise_duration
from resourcepool.translation import gettext as _, gettext_lazy

HELD = (State.LEASED, State.DRAINING)
OUT_OF_USE = (State.DRAINING, State.OUT, State.RESERVED, State.RETIRED)
# The status of a draining resource after its lease, if other than out of service: as a sentence, and for a table.
SENTENCE_AFTER_LEASE = {
    Status.RESERVED: gettext_lazy("It will be reserved when its lease ends."),
    Status.QUARANTINED: gettext_lazy("It will be quarantined when its lease ends."),
    Status.RETIRED: gettext_lazy("It will be retired when its lease ends."),
}
AFTER_LEASE = {
    Status.RESERVED: gettext_lazy("reserved after its lease"),
    Status.QUARANTINED: gettext_lazy("quarantined after its lease"),
    Status.RETIRED: gettext_lazy("retired after its lease"),
}
# Labels of events whose lease is the term of a leader.
ELECTION_LABELS = {EventKind.ACQUIRED: gettext_lazy("elected"), EventKind.RELEASED: gettext_lazy("resigned")}


def key_and_name(resource: Any) -> str:
    """Return "17: http://..": logs, events and commands name a resource by its key."""
    key, name = str(resource.pk), str(resource)
    return name if key == name else f"{key}: {name}"


def title_of(resource: Any) -> str:
    return f"{capfirst(resource._meta.verbose_name)} {key_and_name(resource)}"


def sentences(resource: Any, state: State, now: datetime.datetime, begun: Any) -> list[str]:
    """Return sentences that describe ``resource``.

    Args:
        state: its state at ``now``.
        now: the time of the database's clock.
        begun: the event that began the current lease; None if it is not in the history.
    """
    result: list[str] = []
    if state in HELD:
        result += _lease_sentences(resource, now, begun)
    elif state == State.FREE:
        result.append(_("The next request may get it."))
        if resource.holder:
            result.append(_("Its last lease, held by %s, expired without a release.") % resource.holder)
    elif state in (State.COOLING, State.QUARANTINED):
        text, over = _("It can be leased again in %s."), _("Time is up; reload the page.")
        ends = resource.busy_before if resource.until is None else max(resource.busy_before, resource.until)
        result.append(countdown((ends - now).total_seconds(), text, over))
    if state == State.DRAINING and resource.status in SENTENCE_AFTER_LEASE:
        result.append(str(SENTENCE_AFTER_LEASE[resource.status]))
    if state in OUT_OF_USE:
        result.append(_until_sentence(resource, state))
    if reason := state_details(resource, now).reason:
        result.append(_("Reason: %s") % localized(reason))
    if resource.strikes:
        result.append(_("Quarantined %d times in a row.") % resource.strikes)
    return [*result, _check_sentence(resource, now)]


def _lease_sentences(resource: Any, now: datetime.datetime, begun: Any) -> Iterator[str]:
    yield _("Held by %s.") % resource.holder
    host, pid = (begun.host, begun.pid) if begun and begun.host else host_and_pid(resource.holder)
    if host:
        yield _("On host %(host)s, process %(pid)d.") % {"host": host, "pid": pid}
    if begun:
        since = {"at": format_datetime(begun.at), "ago": duration((now - begun.at).total_seconds())}
        yield _("Since %(at)s (%(ago)s ago).") % since
    else:
        yield _("Start unknown: not in the history.")
    expires_in = max(0.0, (resource.busy_before - now).total_seconds())
    if last := renewal(begun.ttl if begun else None, expires_in):
        yield _("Last renewed %s.") % last
    text = _("Expires in %s unless its holder renews it.")
    over = _("Expired or renewed by now; reload the page to see which.")
    yield countdown(expires_in, text, over)


def leak_text(event: Any) -> str:
    """Return a sentence about an event of a leak: reported or acknowledged."""
    values = {"at": format_datetime(event.at), "why": localized(event.reason), "who": event.actor}
    if event.what == EventKind.ACKNOWLEDGED:
        return _("The leak was acknowledged by %(who)s at %(at)s: %(why)s") % values
    return _("Reported as leaked at %(at)s: %(why)s") % values


def _until_sentence(resource: Any, state: State) -> str:
    if state == State.RETIRED or resource.until is None:
        return _("Cannot be leased until someone returns it to service.")
    return _("Cannot be leased until %s.") % format_datetime(resource.until)


def _check_sentence(resource: Any, now: datetime.datetime) -> str:
    if resource.checked_at is None:
        return _("Never checked.")
    ago = duration((now - resource.checked_at).total_seconds())
    verdict = Verdict(resource.verdict).label if resource.verdict in Verdict.values else "?"
    if getattr(resource, "latency", None) is None:
        return _("Last check: %(verdict)s, %(ago)s ago.") % {"verdict": verdict, "ago": ago}
    values = {"verdict": verdict, "ago": ago, "time": precise_duration(resource.latency)}
    return _("Last check: %(verdict)s in %(time)s, %(ago)s ago.") % values
