"""Operations on channels and subscriptions."""

from resourcepool.locks.channels.models import ChannelQuerySet, SubscriptionQuerySet
from resourcepool.operations.fields import TextField
from resourcepool.operations.operation import Operation, retried
from resourcepool.translation import gettext_lazy as _, ngettext_lazy

MAX_DIGITS = 18


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
REMOVE = Operation(
    name="remove",
    is_destructive=True,
    button=_("Remove"),
    title=_("Remove (a subscription without a reader)"),
    effect=_(
        "Its cursor is removed; a later subscription of this name starts anew. Subscriptions with a reader are skipped."
    ),
    do=retried(SubscriptionQuerySet.remove),
    applicable=SubscriptionQuerySet.available,
    done_message=ngettext_lazy("%(what)s was removed.", "%(what)s were removed.", "count"),
    skipped_message=_("%(count)d skipped: it has a reader."),
)
