"""What an operator can do to task types, servers and queues: each is one call of ``queues.operating`` per task type."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.queues import operating
from resourcepool.queues.models import MAX_NAME, Server
from resourcepool.stats.pins import no_such_server
from resourcepool.stats.queue_alarms import drains_in_vain
from resourcepool.stats.queues import task_type

Entered = dict[str, Any]


class ServerForm(forms.Form):
    """Asks for a server's name."""

    server = forms.CharField(
        label=_("Server"),
        max_length=MAX_NAME,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=_("Its name, without the number: then its next run gets them, too. It need not run now."),
    )

    def clean_server(self) -> str:
        """Refuse what no server can be called."""
        try:
            name = options.text("server", self.cleaned_data["server"], most=MAX_NAME)
        except BadOption:
            message = _("One line of at most %(most)d printable characters.") % {"most": MAX_NAME}
            raise forms.ValidationError(message) from None
        if alone := operating.name_of_run(name):
            raise forms.ValidationError(_("Its name alone, without the number: %(name)s") % {"name": alone})
        return name


@dataclass(frozen=True, kw_only=True)
class Order:
    """One kind of change.

    Attributes:
        button: what the button says; ``title``: the same with what it means.
        effect: what it does, for somebody who has never done it.
        permission: who may: "operate" or "delete".
        form: what is asked besides.
        give: makes the change (name of the task type, the rows of it, what was entered, the operator).
        done: what is said afterwards; plural, with ``count`` and, of the first few, ``names``.
        but: what else has come of it, if anything (name of the task type, what was entered).
        fits: tells whether the page of a row offers it: elsewhere it would change nothing.
    """

    name: str
    button: Any
    title: Any
    effect: Any
    permission: str = "operate"
    form: type[forms.Form] = forms.Form
    give: Callable[[str, Sequence[Any], Entered, str], object]
    done: Any
    but: Callable[[str, Entered], Sequence[str]] = lambda _task_type, _entered: ()
    fits: Callable[[Any], bool] = lambda _row: True


def _ids(queues: Sequence[Any]) -> list[str]:
    return [queue.queue_id for queue in queues]


PAUSE = Order(
    name="pause",
    button=_("Pause"),
    title=_("Pause (begin no more work on its queues)"),
    effect=_(
        "Its servers begin no more work, within a heartbeat; work that goes on is told to end. Who has which queue"
        " stays as it is, until somebody resumes."
    ),
    give=lambda task_type, _rows, _entered, by: operating.pause(task_type, by=by),
    fits=lambda task_type: not task_type.is_paused,
    done=ngettext_lazy("%(count)d was paused.", "%(count)d were paused.", "count"),
)
RESUME = Order(
    name="resume",
    button=_("Resume"),
    title=_("Resume (end a pause)"),
    effect=_("Its servers begin work again, within a heartbeat."),
    give=lambda task_type, _rows, _entered, by: operating.resume(task_type, by=by),
    fits=lambda task_type: bool(task_type.is_paused),
    done=ngettext_lazy("%(count)d was resumed.", "%(count)d were resumed.", "count"),
)
DRAIN = Order(
    name="drain",
    button=_("Drain"),
    title=_("Drain (hand all its queues to others)"),
    effect=_(
        "The others ask for all its queues and get each when the work on it has ended, or when it is late. The server"
        " goes on running without queues, until somebody ends the drain or it is restarted. Queues that nobody else"
        " may have stay."
    ),
    give=lambda task_type, rows, _entered, by: operating.drain(task_type, *map(str, rows), by=by),
    but=lambda name, _entered: [alarm.text for alarm in drains_in_vain(task_type(name))],
    fits=lambda server: server.state == Server.State.UP,
    done=ngettext_lazy("%(count)d is draining: %(names)s.", "%(count)d are draining: %(names)s.", "count"),
)
UNDRAIN = Order(
    name="undrain",
    button=_("End the drain"),
    title=_("End the drain (give it queues again)"),
    effect=_("It gets its share of the queues again, each when the server that has it has finished its work."),
    give=lambda task_type, rows, _entered, by: operating.undrain(task_type, *map(str, rows), by=by),
    fits=lambda server: server.state == Server.State.DRAINING,
    done=ngettext_lazy(
        "%(count)d gets queues again: %(names)s.", "%(count)d get queues again: %(names)s.", "count"
    ),
)
PIN = Order(
    name="pin",
    button=_("Pin"),
    title=_("Pin to a server"),
    effect=_(
        "They go to the server of this name whenever there is one with room for them, and to another while there is"
        " none. Whoever has them now finishes its work first."
    ),
    form=ServerForm,
    give=lambda task_type, rows, entered, by: operating.pin(task_type, _ids(rows), entered["server"], by=by),
    but=lambda name, entered: [text for text in [no_such_server(name, entered["server"])] if text],
    done=ngettext_lazy("%(count)d was pinned.", "%(count)d were pinned.", "count"),
)
UNPIN = Order(
    name="unpin",
    button=_("Unpin"),
    title=_("Unpin (any server may have it)"),
    effect=_("They are shared evenly again. Nothing moves that need not."),
    give=lambda task_type, rows, _entered, by: operating.pin(task_type, _ids(rows), "", by=by),
    fits=lambda queue: bool(queue.pin),
    done=ngettext_lazy("%(count)d is pinned no more.", "%(count)d are pinned no more.", "count"),
)
REMOVE = Order(
    name="remove",
    button=_("Remove"),
    title=_("Remove (when its server has finished with it)"),
    effect=_(
        "What nobody has goes at once; the others when their servers have finished their work on them, or are late. It"
        " cannot be undone; added again, a queue begins without its past."
    ),
    permission="delete",
    give=lambda task_type, rows, _entered, by: operating.remove_queues(task_type, _ids(rows), by=by),
    done=ngettext_lazy(
        "%(count)d was removed, or goes when its server has finished with it.",
        "%(count)d were removed, or go when their servers have finished with them.",
        "count",
    ),
)
