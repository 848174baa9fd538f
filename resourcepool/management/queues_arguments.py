"""What ``resourcepool_queues`` is told: its sub-commands, labels, servers that would join."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.labels import labels_of
from resourcepool.management import arguments, watching
from resourcepool.queues.models import MAX_NAME, MOST_WEIGHT
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.strategies import STRATEGIES

SPANS = {
    "heartbeat_every": "--heartbeat",
    "judge_dead_after": "--judge-dead",
    "reload_every": "--reload",
    "drain_within": "--drain-within",
}


def add_sub_commands(parser: CommandParser) -> None:
    """Add all that can be done; without a word, it is ``show``."""
    parser.set_defaults(task_type=None, queue=[], limit=20, watch=None, json=False)
    about = _("one of these; each has a --help of its own")
    subs = parser.add_subparsers(dest="do", metavar="WHAT", title=_("what to do"), help=about)
    show = _add(subs, "show", _("how servers and queues stand; the default"), nargs="?")
    help_queue = _("only these queues, each with all that is known of it; 0..63 are 64 of them")
    show.add_argument("queue", nargs="*", metavar="QUEUE", help=help_queue)
    watching.add_watch(show)
    arguments.add_limit(show, 20)
    _add_plan(_add(subs, "plan", _("what would move if servers left or joined; changes nothing")))
    _add_add(_add(subs, "add", _("adds queues; with --new, the task type, too")))
    _add_changes(subs)
    for sub in subs.choices.values():
        if sub is not show:
            sub.add_argument("--json", action="store_true", help=_("print one JSON object"))


def labels(words: Iterable[str], option: str = "--label") -> dict[str, str]:
    """Return what KEY=VALUE words say; raises BadOption."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in found:
            raise BadOption(option, word, _("KEY=VALUE, such as zone=eu, each key once"))
        found[key] = value
    return labels_of(found)


def joining(words: Sequence[str], needed: dict[str, str]) -> list[Member]:
    """Return the servers that NAME or NAME:WEIGHT words describe, all with these labels; raises BadOption."""
    return [_member(number, word, needed) for number, word in enumerate(words, 1)]


def settings(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a new task type that were given."""
    return {name: chosen[name] for name in (*SPANS, "strategy") if chosen[name] is not None}


def _member(number: int, word: str, needed: dict[str, str]) -> Member:
    name, colon, weight = word.rpartition(":")
    if not colon:
        name, weight = word, "1"
    if not re.fullmatch("[0-9]{1,9}", weight):
        raise BadOption("--with", word, _("NAME or NAME:WEIGHT, such as web-4:2"))
    name = options.text("--with", name, most=MAX_NAME)
    return Member(-number, name, options.whole("--with", int(weight), least=1, most=MOST_WEIGHT), needed)


def _add(subs: Any, name: str, about: str, **how: Any) -> CommandParser:
    sub: CommandParser = subs.add_parser(name, help=about, description=about)
    sub.add_argument("task_type", metavar="TASK_TYPE", help=_("the name of the task type"), **how)
    return sub


def _add_plan(parser: CommandParser) -> None:
    help_without = _('without this server: "web-3" (all of that name) or "web-3 #17"; may be repeated')
    _add_many(parser, "--without", "SERVER", help_without)
    help_with = _("with one more server, such as web-4, or web-4:2 for weight 2; may be repeated")
    _add_many(parser, "--with", "NAME[:WEIGHT]", help_with, dest="joining")
    _add_many(parser, "--labels", "KEY=VALUE", _("a label of the servers of --with; may be repeated"))
    arguments.add_limit(parser, 100)


def _add_add(parser: CommandParser) -> None:
    _add_queues(parser)
    parser.add_argument("--new", action="store_true", help=_("make the task type, too"))
    parser.add_argument("--parameter", default="", help=_("text that is given to the server of each"))
    help_label = _("only servers with this label get them; may be repeated: all of the labels")
    _add_many(parser, "--label", "KEY=VALUE", help_label)
    abouts = {
        "heartbeat_every": _("with --new: how often a server renews itself, e.g. 1s"),
        "judge_dead_after": _("with --new: without a heartbeat for so long, a server has lost its queues"),
        "reload_every": _("with --new: no server looks for changes more often than that"),
        "drain_within": _(
            "with --new: so long a server may finish its work on a queue that is to go elsewhere"
        ),
    }
    for name, option in SPANS.items():
        parser.add_argument(option, dest=name, type=arguments.span, metavar="SPAN", help=abouts[name])
    parser.add_argument("--strategy", choices=list(STRATEGIES), help=_("with --new: who gets which"))


def _add_changes(subs: Any) -> None:
    change = _add(subs, "change", _("gives queues another parameter or other labels"))
    _add_queues(change)
    change.add_argument("--parameter", help=_("text that is given to the server of each"))
    help_label = _("instead of the labels they have; may be repeated: all of the labels")
    change.add_argument("--label", action="append", metavar="KEY=VALUE", help=help_label)
    change.add_argument("--no-label", action="store_true", help=_("any server may have them"))
    remove = _add(subs, "remove", _("removes queues, each when its server has finished with it"))
    _add_queues(remove)
    _add_dry_run(remove)
    pin = _add(subs, "pin", _("has queues go to the server of a name, whenever there is one"))
    _add_queues(pin)
    pin.add_argument("--to", required=True, metavar="NAME", help=_("a server's name"))
    _add_queues(_add(subs, "unpin", _("ends pin")))
    drain = _("has servers give up all their queues and get no more, while they stay")
    for name, about in {"drain": drain, "undrain": _("ends drain")}.items():
        help_server = _('"web-3" (all of that name) or "web-3 #17"')
        sub = _add(subs, name, about)
        sub.add_argument("server", nargs="+", metavar="SERVER", help=help_server)
        if name == "drain":
            _add_dry_run(sub)
    _add(subs, "pause", _("has the servers begin no more work; who has which queue stays"))
    _add(subs, "resume", _("ends pause"))


def _add_many(parser: CommandParser, option: str, metavar: str, about: str, **how: Any) -> None:
    """Add an option that may be repeated."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=about, **how)


def _add_dry_run(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help=_("only say what would move and why"))
    arguments.add_limit(parser, 100)


def _add_queues(parser: CommandParser) -> None:
    parser.add_argument("queue", nargs="+", metavar="QUEUE", help=_("queues; 0..63 are 64 of them"))
