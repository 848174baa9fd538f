"""Operations on locks, semaphores, read-write locks and barriers, and on channels and subscriptions."""

from typing import Any

from django.db.models import Exists, OuterRef

from resourcepool.locks.bulk_release import remove_barriers, resize_names, revoke, revoke_holders
from resourcepool.locks.channels.models import ChannelQuerySet, SubscriptionQuerySet
from resourcepool.locks.permits import MAX_PERMITS
from resourcepool.operations.operation import REASON, Operation, TextField, retried
from resourcepool.translation import gettext_lazy as _, ngettext_lazy

MAX_DIGITS = 18


def permits_error(line: str) -> str:
    """Return what is wrong with a number of permits; "" if it is valid."""
    if line.isascii() and line.isdigit() and int(line) <= MAX_PERMITS:
        return ""
    return str(_("a whole number from 0 to %(most)d.")) % {"most": MAX_PERMITS}


def holding_names(model: Any) -> Exists:
    """Return the condition that a row has a name that is held."""
    return Exists(model.objects.held().filter(name=OuterRef("name")))


REVOKE = Operation(
    name="revoke",
    is_destructive=True,
    button=_("Revoke"),
    title=_("Revoke (end the leases of its holders)"),
    effect=_(
        "Its holders lose it at once, with all permits, and the first waiter gets it. They notice within a third of"
        " their ttl; a holder that never checks keeps running, and can be recognized only by its old fence."
    ),
    fields=(REASON,),
    do=revoke,
    applicable=lambda rows: rows.filter(holding_names(rows.model)),
    is_offered=lambda row: row.is_held,
    done_message=ngettext_lazy("%(what)s was revoked.", "%(what)s were revoked.", "count"),
    skipped_message=_("%(count)d skipped: not held."),
)
REVOKE_HOLDER = Operation(
    name="revoke-holder",
    is_destructive=True,
    button=_("Revoke all of its holders"),
    title=_("Revoke all of its holders (everything that their processes hold)"),
    effect=_(
        "For processes that are gone or hang: they lose everything they hold, including other locks, semaphores and"
        " read-write locks, and the first waiters get it. They notice within a third of their ttl; a process that never"
        " checks keeps running, and only its old fences reveal it."
    ),
    permission="operate_all",
    fields=(REASON,),
    do=revoke_holders,
    applicable=REVOKE.applicable,
    is_offered=REVOKE.is_offered,
    done_message=ngettext_lazy(
        "%(what)s was revoked, with everything else its holders held.",
        "%(what)s were revoked, with everything else their holders held.",
        "count",
    ),
    skipped_message=REVOKE.skipped_message,
)
RESIZE = Operation(
    name="resize",
    button=_("Resize"),
    title=_("Resize (change the number of permits)"),
    effect=_(
        "Overrides the number in code. More: waiters get the new permits at once. Fewer: free permits are removed"
        " first; held ones stay with their holders until released, and are not granted again. 0 pauses it: all requests"
        " wait."
    ),
    fields=(
        TextField(
            name="permits",
            label=_("Permits"),
            max_length=len(str(MAX_PERMITS)),
            help=_("New number of permits, from 0 to 10,000."),
            error_for=permits_error,
        ),
        REASON,
    ),
    do=lambda rows, permits, reason, actor: resize_names(rows, int(permits), reason, actor=actor),
    done_message=ngettext_lazy("%(what)s was resized.", "%(what)s were resized.", "count"),
    skipped_message=_("%(count)d skipped: no longer there."),
)
REMOVE_BARRIER = Operation(
    name="remove",
    is_destructive=True,
    button=_("Remove"),
    title=_("Remove (and release its waiters)"),
    effect=_(
        "For a barrier that was left behind: its waiters continue at once, as if its work were done. Nothing else is"
        " notified."
    ),
    fields=(REASON,),
    do=remove_barriers,
    done_message=ngettext_lazy("%(what)s was removed.", "%(what)s were removed.", "count"),
    skipped_message=_("%(count)d skipped: already removed."),
)


def cursor_error(line: str) -> str:
    """Return what is wrong with a new cursor; "" if it is valid."""
    if line in ("now", "start") or (line.isascii() and line.isdigit() and int(line) > 0):
        return ""
    return str(_("now, start, or the number of a message."))


PRUNE = Operation(
    name="prune",
    is_destructive=True,
    button=_("Prune"),
    title=_("Prune (remove its messages)"),
    effect=_("All current messages are removed. A durable subscription that has not read them gets an error."),
    do=retried(ChannelQuerySet.prune),
    done_message=ngettext_lazy("%(what)s was pruned.", "%(what)s were pruned.", "count"),
    skipped_message=_("%(count)d skipped: no messages."),
)
REMOVE_CHANNEL = Operation(
    name="remove",
    is_destructive=True,
    button=_("Remove"),
    title=_("Remove (with its messages and subscriptions)"),
    effect=_(
        "Its messages and subscriptions are removed. Readers of a durable subscription get an error. The next message"
        " creates the channel again, with numbers from 1."
    ),
    do=retried(ChannelQuerySet.remove),
    done_message=ngettext_lazy("%(what)s was removed.", "%(what)s were removed.", "count"),
    skipped_message=_("%(count)d skipped: no longer there."),
)
MOVE = Operation(
    name="move",
    button=_("Move"),
    title=_("Move (its cursor)"),
    effect=_(
        "Reading resumes there: messages are re-read or skipped. A current reader follows within a third of its ttl."
    ),
    fields=(
        TextField(
            name="to",
            label=_("To"),
            max_length=MAX_DIGITS,
            help=_("now, start, or the number of the first message to read."),
            error_for=cursor_error,
        ),
    ),
    do=retried(SubscriptionQuerySet.move),
    applicable=SubscriptionQuerySet.durable,
    is_offered=lambda row: bool(row.is_durable),
    done_message=ngettext_lazy("%(what)s was moved.", "%(what)s were moved.", "count"),
    skipped_message=_("%(count)d skipped: unnamed."),
)
REMOVE_SUBSCRIPTION = Operation(
    name="remove",
    is_destructive=True,
    button=_("Remove"),
    title=_("Remove (a subscription without a reader)"),
    effect=_(
        "Its cursor is removed; a later subscription of this name starts anew. Subscriptions with a reader are skipped."
    ),
    do=retried(SubscriptionQuerySet.remove),
    applicable=SubscriptionQuerySet.available,
    is_offered=lambda row: row.micros_left <= 0,
    done_message=ngettext_lazy("%(what)s was removed.", "%(what)s were removed.", "count"),
    skipped_message=_("%(count)d skipped: it has a reader."),
)
