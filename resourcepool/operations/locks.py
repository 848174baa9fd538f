"""What an operator does to locks, semaphores, read-write locks and barriers, by name."""

from dataclasses import replace

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.locks.operator_actions import remove_barriers, resize_names, revoke, revoke_holders
from resourcepool.locks.resize import MAX_PERMITS
from resourcepool.operations.fields import TextField
from resourcepool.operations.operation import Operation
from resourcepool.operations.taskqueue import REASON

REASON_FIELD = replace(REASON, help=_("One line for the history."))


def permits_error(line: str) -> str:
    """Return what is wrong with how many permits there are to be; "": nothing."""
    if line.isascii() and line.isdigit() and int(line) <= MAX_PERMITS:
        return ""
    return str(_("a whole number from 0 to %(most)d.")) % {"most": MAX_PERMITS}


REVOKE = Operation(
    name="revoke",
    button=_("Free"),
    title=_("Free (take it away from whoever holds it)"),
    effect=_(
        "Its holders lose it at once, all permits of it, and the first in line gets it. They are told within a third of"
        " their ttl; a holder that does not look goes on with what it does, and only its fence gives it away."
    ),
    fields=(REASON_FIELD,),
    do=revoke,
    applicable=lambda rows: rows.filter(Exists(rows.model.objects.held().filter(name=OuterRef("name")))),
    done_message=ngettext_lazy("%(count)d was freed.", "%(count)d were freed.", "count"),
    skipped_message=_("%(count)d skipped: held by nobody."),
)
REVOKE_HOLDER = Operation(
    name="revoke-holder",
    button=_("Free its holders"),
    title=_("Free its holders (take everything away from the processes that hold it)"),
    effect=_(
        "For processes that are gone or hang: they lose all that they hold, of other locks, semaphores and read-write"
        " locks, too, and the first in each line gets it. They are told within a third of their ttl; a process that"
        " does not look goes on with what it does, and only its fences give it away."
    ),
    permission="operate_all",
    fields=(REASON_FIELD,),
    do=revoke_holders,
    applicable=REVOKE.applicable,
    done_message=ngettext_lazy(
        "%(count)d was freed, with all else that its holders held.",
        "%(count)d were freed, with all else that their holders held.",
        "count",
    ),
    skipped_message=REVOKE.skipped_message,
)
RESIZE = Operation(
    name="resize",
    button=_("Resize"),
    title=_("Resize (how many permits there are)"),
    effect=_(
        "It stays so, whatever the code says. More: those in line get them at once. Fewer: free permits go first; those"
        " that are held stay with their holders until they are released, and nobody gets them after that. 0 pauses it:"
        " whoever asks waits."
    ),
    fields=(
        TextField(
            name="permits",
            label=_("Permits"),
            max_length=len(str(MAX_PERMITS)),
            help=_("How many there are to be, from 0 to 10,000."),
            error_for=permits_error,
        ),
        REASON_FIELD,
    ),
    do=lambda rows, permits, reason, actor: resize_names(rows, int(permits), reason, actor=actor),
    done_message=ngettext_lazy("%(count)d was resized.", "%(count)d were resized.", "count"),
    skipped_message=_("%(count)d skipped: no longer there."),
)
REMOVE_BARRIER = Operation(
    name="remove",
    button=_("Remove"),
    title=_("Remove (let all go on who wait before it)"),
    effect=_(
        "For a barrier that was left behind: whoever waits before it goes on at once, as if the work it stands for were"
        " done. Nobody else is told."
    ),
    fields=(REASON_FIELD,),
    do=remove_barriers,
    done_message=ngettext_lazy("%(count)d was removed.", "%(count)d were removed.", "count"),
    skipped_message=_("%(count)d skipped: not standing."),
)
