"""``manage.py resourcepool_channels``: how the channels stand; publishes, listens, and what operators change."""

import argparse
import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connections, router
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from resourcepool.database.retry import retrying
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, MessagesMissed
from resourcepool.locks.channels.channel import Channel
from resourcepool.locks.channels.checking import From
from resourcepool.locks.channels.models import Broadcast, Subscription
from resourcepool.locks.channels.subscriber import Subscriber
from resourcepool.management import watching
from resourcepool.management.arguments import entered
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.channels_report import channels_as_text
from resourcepool.management.layout import plain
from resourcepool.operations.channels import MOVE, PRUNE, REMOVE, REMOVE_CHANNEL
from resourcepool.operations.operation import Operation
from resourcepool.status.channels import CHANNELS, LISTED, ChannelStatus, channels

ACTS = {"prune": PRUNE, "remove": REMOVE_CHANNEL, "move": MOVE, "forget": REMOVE}
OF_SUBSCRIPTIONS = ("move", "forget")


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows each channel: how many messages are kept, who reads, and which durable subscriptions lag behind;"
        " publishes a message, prints messages as they come, moves cursors, prunes and removes."
    )
    example = (
        "manage.py resourcepool_channels\n"
        "manage.py resourcepool_channels show config\n"
        "manage.py resourcepool_channels publish config '{\"level\": 3}'\n"
        "manage.py resourcepool_channels listen config --from start --timeout 1\n"
        "manage.py resourcepool_channels move config search-indexer --to start\n"
        "manage.py resourcepool_channels forget config search-indexer\n"
        "manage.py resourcepool_channels prune config --yes"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """See ``BaseCommand``."""
        acts = watching.add_acts(parser)
        show = acts.add_parser("show", help=_("shows all channels, or one with its subscriptions; the default"))
        show.add_argument("channel", nargs="?", help=_("only this one"))
        watching.add_watch(show, default=argparse.SUPPRESS)
        publish = acts.add_parser("publish", help=_("publishes a message; the first one makes the channel"))
        publish.add_argument("channel", help=_("its name"))
        publish.add_argument("payload", help=_("JSON"))
        listen = acts.add_parser("listen", help=_("prints messages, one JSON object a line, until Ctrl-C"))
        listen.add_argument("channel", help=_("its name"))
        listen.add_argument(
            "--from", dest="start", default="now", metavar="WHERE", help=_("now, start or a number")
        )
        listen.add_argument(
            "--timeout", type=float, metavar="SECONDS", help=_("end after so long without a message")
        )
        for name, operation in ACTS.items():
            self._add(acts, name, operation)

    def _add(self, acts: Any, name: str, operation: Operation) -> None:
        act = acts.add_parser(name, help=str(operation.title))
        act.add_argument("channel", help=_("its name"))
        if name in OF_SUBSCRIPTIONS:
            act.add_argument("subscription", help=_("its name"))
        act.add_argument("--yes", action="store_true", help=_("do not ask"))
        for line in operation.fields:
            act.add_argument(f"--{line.name}", required=True, help=str(line.help))

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = options["do"] or "show"
        if does != "show" and (options["json"] or options["watch"] is not None):
            raise CommandError(_("--watch and --json are for show; nothing was changed"))
        if does == "show":
            watching.watch(self, lambda: _look(options.get("channel")), options)
        elif does == "publish":
            number = Channel(options["channel"]).publish(_parsed(options["payload"]))
            self.stdout.write(_("published as number %d") % number)
        elif does == "listen":
            self._listen(options)
        else:
            self._operate(does, ACTS[does], options)

    def _listen(self, options: dict[str, Any]) -> None:
        start: From = int(options["start"]) if options["start"].isdecimal() else options["start"]
        is_new = CHANNELS.called(options["channel"]) is None
        try:
            with self._subscribed(options["channel"], start, options["timeout"]) as messages:
                if is_new:
                    made = _("there was no channel %s until now") % plain(options["channel"])
                    self.stderr.write(made, style_func=str)
                self.stderr.write(_("listening; Ctrl-C ends it"), style_func=str)
                while self._printed(messages):
                    pass
        except KeyboardInterrupt:
            return  # the way to end it

    def _subscribed(self, channel: str, start: From, timeout: float | None) -> Subscriber:
        try:
            return Channel(channel).subscribe(from_=start, timeout=timeout)
        except BadOption as error:
            if error.name != "from_":
                raise
            allowed = Sentence(gettext_noop("now, start, or the number of a message"))
            raise BadOption("--from", error.value, allowed) from None

    def _printed(self, messages: Any) -> bool:
        try:
            message = messages.get()
        except MessagesMissed as missed:
            self.stderr.write(str(missed))
            return True
        if message is None:
            return False
        told = {"number": message.number, "published_at": message.published_at.isoformat()}
        told |= {"publisher": message.publisher, "payload": message.payload}
        self.stdout.write(json.dumps(told))
        self.stdout.flush()
        return True

    def _operate(self, does: str, operation: Operation, options: dict[str, Any]) -> None:
        (known,) = channels(options["channel"])
        rows: Any = Broadcast.objects.using(router.db_for_write(Broadcast)).filter(pk=known.name)
        if does in OF_SUBSCRIPTIONS:
            wanted = {"channel_id": known.name, "name": options["subscription"]}
            rows = Subscription.objects.using(rows.db).filter(**wanted)
            if not retrying(connections[rows.db], rows.exists):
                raise BadOption("subscription", options["subscription"], _subscriptions(known))
        asked = entered(operation, options)
        about = "/".join([known.name, *([options["subscription"]] if does in OF_SUBSCRIPTIONS else [])])
        self.ask(f"{operation.title}: {plain(about)}?", yes=options["yes"])
        if retrying(connections[rows.db], lambda: operation.do(rows, actor=actor(), **asked)):
            self.stdout.write(operation.done % {"count": 1})
        else:
            raise CommandError(operation.otherwise % {"count": 1})


def _subscriptions(of: ChannelStatus) -> Sentence:
    names = [one.name for one in of.subscriptions]
    if not names:
        return Sentence(gettext_noop("a durable subscription; this channel has none"))
    some = ", ".join(names[:LISTED]) + (" .." if len(names) > LISTED else "")
    return Sentence(gettext_noop("one of %(names)s"), names=some)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadOption("payload", text, f"JSON ({error})") from None


def _look(name: str | None) -> watching.Look:
    found = channels(*([name] if name else []))
    return {"channels": found}, channels_as_text(found)
