"""``manage.py resourcepool_channels``: how the channels stand; publishes, listens, and what operators change."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any

from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import aware
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, DatabaseUnavailable, MessagesMissed
from resourcepool.locks.base import wait_seconds
from resourcepool.locks.channels import validation
from resourcepool.locks.channels.channel import Channel
from resourcepool.locks.channels.models import Subscription
from resourcepool.locks.channels.validation import From
from resourcepool.management.arguments import arg, field_values, parse_json, yes
from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import Options, Subcommand, action, field_arguments
from resourcepool.management.work_commands import NamedRowsCommand
from resourcepool.operations import Operation
from resourcepool.operations.channels import MOVE, PRUNE, REMOVE, REMOVE_CHANNEL
from resourcepool.status.channels import CHANNELS, MAX_SUBSCRIPTIONS_SHOWN

PAUSE = 0.5  # seconds between two looks for a channel that is not there yet
ON_CHANNELS = {"prune": PRUNE, "remove": REMOVE_CHANNEL}
ON_SUBSCRIPTIONS = {"move": MOVE, "forget": REMOVE}


class Command(NamedRowsCommand):
    reader = CHANNELS
    show_help = gettext_lazy("shows all channels, or one with its subscriptions; the default")
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

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        publishes = _("publishes a message; the first one makes the channel")
        yield action("publish", publishes, self.publish, self.name, arg("payload", _("JSON")))
        start = arg("--from", _("now, start or a number"), dest="start", default="now", metavar="WHERE")
        timeout = arg("--timeout", _("end after so long without a message"), type=float, metavar="SECONDS")
        listens = _("prints messages, one JSON object a line, until Ctrl-C")
        yield action("listen", listens, self.listen, self.name, start, timeout)
        for word, one in ON_CHANNELS.items():
            yield action(
                word, one.title, partial(self.do_to_channel, one), self.name, yes(), *field_arguments(one)
            )
        which = [self.name, arg("subscription", _("its name")), yes()]
        for word, one in ON_SUBSCRIPTIONS.items():
            yield action(word, one.title, partial(self.do_to_subscription, one), *which, *field_arguments(one))

    def publish(self, options: Options) -> None:
        payload = parse_json("payload", options["payload"], "JSON (%s)")
        channel = Channel(options["channel"])
        is_new = CHANNELS.get(channel.name) is None
        self.stdout.write(_("published as number %d") % channel.publish(payload))
        if is_new:
            self.note(_("there was no channel %s until now") % one_line(channel.name))

    def listen(self, options: Options) -> None:
        start, timeout = _start(options["start"]), wait_seconds("--timeout", options["timeout"])
        channel = Channel(options["channel"])
        try:
            if CHANNELS.get(channel.name) is None:
                told = _("no channel is called %r yet; waiting for its first message; Ctrl-C ends it")
                self.note(told % one_line(channel.name))
                if not _wait_for_channel(channel.name, timeout):
                    return
                start = "start" if start == "now" else start
            with channel.subscribe(from_=start, timeout=options["timeout"]) as messages:
                self.note(_("listening; Ctrl-C ends it"))
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
        told = {"number": message.number, "published_at": aware(message.published_at).isoformat()}
        told |= {"publisher": message.publisher, "payload": message.payload}
        self.stdout.write(json.dumps(told))
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
        self.operate(operation, rows, 1, answered)


def _start(text: str) -> From:
    """Return where to begin; raises BadOption."""
    try:
        return validation.start(int(text[:20]) if text.isdecimal() else text)
    except BadOption:
        allowed = Sentence(gettext_noop("now, start, or the number of a message"))
        raise BadOption("--from", text, allowed) from None


def _wait_for_channel(channel: str, timeout: float) -> bool:
    """Wait for a channel without making it: its name may be a typing error. False: there was none for so long."""
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
