"""``--watch``: repeats a report until Ctrl-C, even while the database is unavailable."""

import datetime
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from rich.console import Group
from rich.live import Live

from resourcepool import options as checked
from resourcepool.db.threads.wakeup import interruptible_sleep
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import printable_lines
from resourcepool.status.times import local_time
from resourcepool.translation import gettext as _

Report = tuple[Any, Iterable[Any]]
"""Data for ``--json``, and the same as tables and lines."""


def watch_arguments(**default: Any) -> list[Argument]:
    """Return ``--watch`` and ``--json``, which ``watch`` reads; ``default``: see ``add_argument``."""
    about = _("repeat every SECONDS (default: 2) until Ctrl-C")
    return [
        arg("--watch", about, nargs="?", type=float, const=2.0, metavar="SECONDS", **default),
        arg("--json", _("print one JSON object; with --watch, one per line"), action="store_true", **default),
    ]


def watch(command: OperatorCommand, read: Callable[[], Report], options: dict[str, Any]) -> None:
    """Show the report that ``read`` returns, once; with ``--watch`` until Ctrl-C, each with the time.

    On a terminal each report replaces the one before.
    """
    if options["watch"] is None:
        command.show(*read())
        return
    seconds = checked.seconds("--watch", options["watch"], least=0.2)
    is_live = command.stdout.isatty() and not options["json"]
    try:
        with Live(console=command.printer, auto_refresh=False) if is_live else nullcontext() as live:
            while True:
                _show(command, read, live)
                interruptible_sleep(seconds)
    except KeyboardInterrupt:
        return  # the normal end


def _show(command: OperatorCommand, read: Callable[[], Report], live: Live | None) -> None:
    """Show one report; if the database cannot be read, its error."""
    now = local_time(datetime.datetime.now(datetime.UTC))
    try:
        data, parts = read()
    except (ResourcePoolError, DatabaseError, InterfaceError) as error:
        connections.close_all()
        data, parts = None, [printable_lines(localized(error))]
    if live:
        live.update(Group(now, *parts), refresh=True)
    elif data is None:
        command.stderr.write(*parts)
    else:
        command.show(data, [now, *parts])
        command.stdout.flush()
