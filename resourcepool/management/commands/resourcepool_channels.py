"""``manage.py resourcepool_channels``: shows channels, publishes, listens, and operates on them."""

import json
from collections.abc import Iterator
from contextlib import suppress
from time import sleep
from typing import Any

from django.db import connections

from resourcepool.clock import monotonic
from resourcepool.db.dialect import aware
from resourcepool.db.retry import retrying
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, DatabaseUnavailable, MessagesMissed
from resourcepool.locks.channels.channel import Channel
from resourcepool.locks.channels.models import Subscription
from resourcepool.locks.channels.subscription import From, checked_start
from resourcepool.locks.lockable import wait_seconds
from resourcepool.management.arguments import arg, field_values, parse_json, yes
from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import Options, Subcommand, action, operates
from resourcepool.management.work_commands import NamedRowsCommand
from resourcepool.operations import Operation
from resourcepool.operations.locks import MOVE, PRUNE, REMOVE_CHANNEL, REMOVE_SUBSCRIPTION
from resourcepool.status.locks.channels import CHANNELS, MAX_SUBSCRIPTIONS_SHOWN, SYSTEM
from resourcepool.translation import gettext as _, gettext_lazy, gettext_noop

PAUSE = 0.5  # seconds between two checks for a channel that does not exist yet


class Command(NamedRowsCommand):
    system = SYSTEM
    show_help = gettext_lazy("show all channels, or one with its subscriptions (default)")
    about = gettext_lazy(
        "Shows each channel: kept messages, readers and lagging durable subscriptions; publishes a message, prints"
        " messages as they arrive, moves cursors, prunes and removes."
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

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        publishes = _("publish a message; the first one creates the channel")
        yield action("publish", publishes, self.publish, self.name, arg("payload", _("JSON")))
        start = arg("--from", _("now, start or a number"), dest="start", default="now", metavar="WHERE")
        timeout = arg("--timeout", _("exit after SECONDS without a message"), type=float, metavar="SECONDS")
        listens = _("print messages, one JSON object per line, until Ctrl-C")
        yield action("listen", listens, self.listen, self.name, start, timeout)
        yield operates(PRUNE, self.do_to_channel, self.name, yes())
        yield operates(REMOVE_CHANNEL, self.do_to_channel, self.name, yes())
        which = [self.name, arg("subscription", _("its name")), yes()]
        yield operates(MOVE, self.do_to_subscription, *which)
        yield operates(REMOVE_SUBSCRIPTION, self.do_to_subscription, *which, name="forget")

    def publish(self, options: Options) -> None:
        payload = parse_json("payload", options["payload"], "JSON (%s)")
        channel = Channel(options["channel"])
        is_new = CHANNELS.get(channel.name) is None
        self.stdout.write(_("published as number %d") % channel.publish(payload))
        if is_new:
            self.note(_("channel %s was created") % one_line(channel.name))

    def listen(self, options: Options) -> None:
        start, timeout = _start(options["start"]), wait_seconds("--timeout", options["timeout"])
        channel = Channel(options["channel"])
        try:
            if CHANNELS.get(channel.name) is None:
                text = _("channel %r does not exist yet; waiting for its first message (Ctrl-C stops)")
                self.note(text % one_line(channel.name))
                if not _wait_for_channel(channel.name, timeout):
                    return
                start = "start" if start == "now" else start
            with channel.subscribe(from_=start, timeout=options["timeout"]) as messages:
                self.note(_("listening (Ctrl-C stops)"))
                while self._printed(messages):
                    pass
        except KeyboardInterrupt:
            self.note(_("stopped"))

    def _printed(self, messages: Any) -> bool:
        try:
            message = messages.get()
        except MessagesMissed as missed:
            self.stderr.write(str(missed))
            return True
        if message is None:
            return False
        fields = {"number": message.number, "published_at": aware(message.published_at).isoformat()}
        fields |= {"publisher": message.publisher, "payload": message.payload}
        self.stdout.write(json.dumps(fields))
        self.stdout.flush()
        return True

    def do_to_channel(self, operation: Operation, options: Options) -> None:
        name = self.known(options).name
        self._confirmed(operation, self.rows.filter(pk=name), name, options)

    def do_to_subscription(self, operation: Operation, options: Options) -> None:
        (channel,), name = CHANNELS.named(options["channel"]), options["subscription"]
        rows = Subscription.objects.using(self.rows.db).filter(channel_id=channel.name, name=name)
        if not retrying(connections[rows.db], rows.exists):
            raise BadOption("subscription", name, _known([one.name for one in channel.subscriptions]))
        self._confirmed(operation, rows, f"{channel.name}/{name}", options)

    def _confirmed(self, operation: Operation, rows: Any, called: str, options: Options) -> None:
        answered = field_values(operation, options)
        self.confirm(f"{operation.title}: {one_line(called)}?", yes=options["yes"])
        self.operate(operation, rows, [called], answered)


def _start(text: str) -> From:
    """Return where to start; raises BadOption."""
    try:
        return checked_start(int(text[:20]) if text.isdecimal() else text)
    except BadOption:
        allowed = Sentence(gettext_noop("now, start, or the number of a message"))
        raise BadOption("--from", text, allowed) from None


def _wait_for_channel(channel: str, timeout: float) -> bool:
    """Wait until a channel exists, without creating it, in case of a typo in its name. False: timeout."""
    until = monotonic() + timeout
    while monotonic() < until:
        sleep(min(PAUSE, max(0.0, until - monotonic())))
        with suppress(DatabaseUnavailable):
            if CHANNELS.get(channel) is not None:
                return True
    return False


def _known(subscriptions: list[str]) -> Sentence:
    if not subscriptions:
        return Sentence(gettext_noop("a durable subscription; this channel has none"))
    some = ", ".join(subscriptions[:MAX_SUBSCRIPTIONS_SHOWN]) + (
        " .." if len(subscriptions) > MAX_SUBSCRIPTIONS_SHOWN else ""
    )
    return Sentence(gettext_noop("one of %(names)s"), names=some)
