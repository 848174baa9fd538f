"""Events as sentences: who did what, to which row, and why."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.apps import apps
from django.db.models import Subquery

from resourcepool.elections.models import election_models
from resourcepool.events import localized
from resourcepool.history.models import Event
from resourcepool.locks.models import NUMBER_MARK, RWLockPermit, SemaphorePermit
from resourcepool.resources.registry import resource_models
from resourcepool.signals import EventKind
from resourcepool.status.alarms import SNOOZED as ALARM
from resourcepool.status.snapshots import fetch_all
from resourcepool.status.times import precise_duration
from resourcepool.translation import gettext as _, gettext_lazy

# %(what)s: the row; %(holder)s: of its lease; %(who)s: the operator, or the process that caused the event.
SENTENCES: Mapping[str, Any] = {
    EventKind.ACQUIRED: gettext_lazy("%(holder)s acquired %(what)s"),
    EventKind.RELEASED: gettext_lazy("%(holder)s released %(what)s"),
    EventKind.HANDED_OVER: gettext_lazy("%(holder)s handed over %(what)s to the next waiter"),
    EventKind.LOST: gettext_lazy("%(holder)s lost %(what)s"),
    EventKind.EXPIRED: gettext_lazy("the lease of %(holder)s on %(what)s expired without a release"),
    EventKind.REVOKED: gettext_lazy("%(who)s revoked %(what)s from %(holder)s"),
    EventKind.FIXED: gettext_lazy("%(holder)s exchanged %(what)s as faulty"),
    EventKind.QUARANTINED: gettext_lazy("%(who)s quarantined %(what)s"),
    EventKind.DRAINED: gettext_lazy("%(who)s took %(what)s out of service"),
    EventKind.RESERVED: gettext_lazy("%(who)s reserved %(what)s"),
    EventKind.RETURNED: gettext_lazy("%(who)s returned %(what)s to service"),
    EventKind.CHECKED: gettext_lazy("%(who)s checked %(what)s"),
    EventKind.LEAKED: gettext_lazy("%(what)s was reported as leaked by %(holder)s"),
    EventKind.ACKNOWLEDGED: gettext_lazy("%(who)s acknowledged the leak of %(what)s"),
    EventKind.PAUSED: gettext_lazy("%(who)s paused %(what)s"),
    EventKind.RESUMED: gettext_lazy("%(who)s resumed %(what)s"),
    EventKind.BLOCKED: gettext_lazy("%(what)s failed and blocks its stream"),
    EventKind.SKIPPED: gettext_lazy("%(what)s failed and was skipped"),
    EventKind.DEAD: gettext_lazy("%(what)s failed for good"),
    EventKind.RETRIED: gettext_lazy("%(who)s retried %(what)s"),
    EventKind.DISCARDED: gettext_lazy("%(who)s discarded %(what)s"),
    EventKind.FAILED: gettext_lazy("%(what)s failed"),
    EventKind.FIRED: gettext_lazy("%(who)s fired %(what)s by hand"),
    EventKind.CANCELLED: gettext_lazy("%(who)s cancelled %(what)s"),
    EventKind.MOVED: gettext_lazy("%(who)s moved the cursor of %(what)s"),
    EventKind.DELETED: gettext_lazy("%(who)s deleted %(what)s"),
    EventKind.MISSED: gettext_lazy("%(what)s missed messages that were removed before it read them"),
    EventKind.RESIZED: gettext_lazy("%(who)s resized %(what)s"),
    EventKind.SNOOZED: gettext_lazy("%(who)s snoozed %(what)s"),
}
# Of events that cover the whole lease.
WHOLE: Mapping[str, Any] = {
    EventKind.RELEASED: gettext_lazy("%(holder)s acquired and released %(what)s"),
    EventKind.HANDED_OVER: gettext_lazy("%(holder)s acquired %(what)s and handed it over to the next waiter"),
    EventKind.FIXED: gettext_lazy("%(holder)s acquired %(what)s and exchanged it as faulty"),
    EventKind.QUARANTINED: gettext_lazy("%(holder)s acquired and quarantined %(what)s"),
}
# Of elections, and of streams, whose lease is the term of a leader.
TERMS: Mapping[str, Any] = {
    EventKind.ACQUIRED: gettext_lazy("%(holder)s was elected leader of %(what)s"),
    EventKind.RELEASED: gettext_lazy("%(holder)s resigned as leader of %(what)s"),
    EventKind.LOST: gettext_lazy("%(holder)s lost the leadership of %(what)s"),
    EventKind.EXPIRED: gettext_lazy("the term of %(holder)s as leader of %(what)s expired"),
}
USUAL = (EventKind.ACQUIRED, EventKind.RELEASED, EventKind.HANDED_OVER, EventKind.CHECKED)
MAX_LATEST = 6
NEWEST = 10_000  # events among which the latest are looked for
LOST_TO = gettext_lazy("%(holder)s lost %(what)s: %(who)s revoked it")


def add_sentences(events: Sequence[Any]) -> None:
    """Set ``sentence`` and ``details`` on each event: "ann revoked proxy 17 from crawler-3", "held for 12 min".

    The loss of a lease that was revoked names the operator; that takes one query.
    """
    names, revoked = _names(), _revocations(events)
    for event in events:
        event.sentence = _sentence(event, names, revoked.get((event.pool, event.row, event.fence)))
        event.details = " · ".join(_details(event))


def latest_events(labels: Iterable[str], visible: Collection[Any]) -> list[Any]:
    """Return the latest events of operators, and of what went wrong, with sentences, newest first.

    Args:
        labels: of the pools; ``visible``: the other models whose events are returned.
    """
    pools = [*(label.lower() for label in labels), *(model._meta.label_lower for model in visible)]
    last = Subquery(Event.objects.order_by("-pk").values("pk")[:1])
    newest = Event.objects.filter(pool__in=pools, pk__gt=last - NEWEST).exclude(what__in=USUAL)
    events = fetch_all(newest.order_by("-pk")[:MAX_LATEST])
    add_sentences(events)
    return events


def thing(pool: str, row: str, names: Mapping[str, str] | None = None) -> str:
    """Return the row of an event in words: "proxy 17", "semaphore imports"."""
    name = (names or _names()).get(pool, pool)
    of_permits = {model._meta.label_lower for model in (SemaphorePermit, RWLockPermit)}
    return f"{name} {row.rpartition(NUMBER_MARK)[0] or row if pool in of_permits else row}"


def _names() -> dict[str, str]:
    models = (*resource_models(), *apps.get_models())
    return {model._meta.label_lower: str(model._meta.verbose_name) for model in models} | {
        ALARM: _("the alarm")
    }


def _sentence(event: Any, names: Mapping[str, str], revocation: Any) -> str:
    if not event.pool:  # about the history itself
        return localized(event.reason)
    is_term = event.pool in {model._meta.label_lower for model in election_models()}
    text = WHOLE.get(event.what) if event.is_whole else TERMS.get(event.what) if is_term else None
    is_revoked = event.what == EventKind.LOST and revocation is not None
    about = revocation if is_revoked else event
    text = LOST_TO if is_revoked else text or SENTENCES.get(event.what)
    values = {
        "what": thing(event.pool, event.row, names),
        "holder": event.holder or event.host or _("an unknown process"),
        "who": about.actor or about.holder or _("a program"),
    }
    sentence = str(text % values) if text else f"{event.what} {values['what']}"
    reason = localized(about.reason)
    return _("%(sentence)s: %(reason)s") % {"sentence": sentence, "reason": reason} if reason else sentence


def _details(event: Any) -> Iterator[str]:
    if event.seconds is not None:
        text = _("took %s") if event.what == EventKind.CHECKED else _("held for %s")
        yield text % precise_duration(event.seconds)
    if event.host and not event.holder.startswith(event.host):
        yield f"{event.host}/{event.pid}" if event.pid else event.host
    if event.fence:
        yield _("fence %d") % event.fence


def _revocations(events: Iterable[Any]) -> dict[tuple[str, str, int], Any]:
    lost = [event for event in events if event.what == EventKind.LOST and event.pool]
    if not lost:
        return {}
    found = Event.objects.using(lost[0]._state.db).filter(
        pool__in={event.pool for event in lost},
        row__in={event.row for event in lost},
        fence__in={event.fence for event in lost},
        what=EventKind.REVOKED,
    )
    return {(event.pool, event.row, event.fence): event for event in found}
