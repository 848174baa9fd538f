"""``--watch``: the same look again and again, until Ctrl-C, also while the database is away."""

import threading
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone
from django.utils.translation import gettext as _

from resourcepool import options as checked
from resourcepool.events import shown
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.layout import local, printable
from resourcepool.management.operating import OperatorCommand

CLEAR = "\x1b[H\x1b[2J"


def add_watch(parser: CommandParser) -> None:
    """Add ``--watch`` and ``--json``; ``watch`` obeys them."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=2.0,
        metavar="SECONDS",
        help=_("repeat until Ctrl-C; default: every 2 s"),
    )
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object; with --watch, one a line")
    )


def watch(command: OperatorCommand, show: Callable[[], None], options: dict[str, Any]) -> None:
    """Call ``show`` once; with ``--watch`` until Ctrl-C, each look headed by the time."""
    if options["watch"] is None:
        show()
        return
    pause = checked.seconds("--watch", options["watch"], least=0.2)
    try:
        while True:
            _look(command, show, as_json=options["json"])
            threading.Event().wait(pause)
    except KeyboardInterrupt:
        return  # the way to end it


def _look(command: OperatorCommand, show: Callable[[], None], *, as_json: bool) -> None:
    """Show it once more; when the database has gone away, say so, and look again."""
    if command.stdout.isatty() and not as_json:
        command.stdout.write(CLEAR, ending="")
    try:
        if not as_json:
            command.stdout.write(local(timezone.now()))
        show()
    except CommandError:
        raise
    except (ResourcePoolError, DatabaseError, InterfaceError) as error:
        command.stderr.write(printable(shown(error)))
        connections.close_all()
    command.stdout.flush()
