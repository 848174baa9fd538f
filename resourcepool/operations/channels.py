"""What an operator does to channels and subscriptions."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.locks.channels.models import ChannelQuerySet, SubscriptionQuerySet
from resourcepool.operations.fields import TextField
from resourcepool.operations.operation import Operation

MAX_DIGITS = 18


def cursor_error(line: str) -> str:
    """Return what is wrong with where a cursor is to go; "": nothing."""
    if line in ("now", "start") or (line.isascii() and line.isdigit() and int(line) > 0):
        return ""
    return str(_("now, start, or the number of a message."))


PRUNE = Operation(
    name="prune",
    button=_("Prune"),
    title=_("Prune (remove its messages)"),
    effect=_(
        "The messages that are there now are removed. A durable subscription that has not read them is told so."
    ),
    do=ChannelQuerySet.prune,
    done_message=ngettext_lazy("%(count)d was pruned.", "%(count)d were pruned.", "count"),
    skipped_message=_("%(count)d skipped: no messages."),
)
REMOVE_CHANNEL = Operation(
    name="remove",
    button=_("Remove"),
    title=_("Remove (with its messages and subscriptions)"),
    effect=_(
        "Its messages and its subscriptions are removed. Whoever reads a durable one gets an error; whoever publishes"
        " makes the channel anew, and numbers begin at 1."
    ),
    do=ChannelQuerySet.remove,
    done_message=ngettext_lazy("%(count)d was removed.", "%(count)d were removed.", "count"),
    skipped_message=_("%(count)d skipped: no longer there."),
)
MOVE = Operation(
    name="move",
    button=_("Move"),
    title=_("Move (its cursor)"),
    effect=_(
        "It goes on there: messages are read again, or never. Whoever reads at this moment goes on there as well,"
        " within a third of its ttl."
    ),
    fields=(
        TextField(
            name="to",
            label=_("To"),
            max_length=MAX_DIGITS,
            help=_("now, start, or the number of the first message that is to be read."),
            error_for=cursor_error,
        ),
    ),
    do=SubscriptionQuerySet.move,
    applicable=SubscriptionQuerySet.durable,
    is_offered=lambda row: bool(row.is_durable),
    done_message=ngettext_lazy("%(count)d was moved.", "%(count)d were moved.", "count"),
    skipped_message=_("%(count)d skipped: without a name."),
)
REMOVE = Operation(
    name="remove",
    button=_("Remove"),
    title=_("Remove (a subscription that nobody reads)"),
    effect=_(
        "Its cursor is forgotten: a subscription of this name begins anew. One that is being read is left alone."
    ),
    do=SubscriptionQuerySet.remove,
    applicable=SubscriptionQuerySet.available,
    done_message=ngettext_lazy("%(count)d was removed.", "%(count)d were removed.", "count"),
    skipped_message=_("%(count)d skipped: being read."),
)
