"""``--watch``: a reading repeated until Ctrl-C, also while the database is away."""

import datetime
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.utils.translation import gettext as _
from rich.console import Group
from rich.live import Live

from resourcepool import options as checked
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import local_time, printable
from resourcepool.threads.interruptible_sleep import interruptible_sleep

Report = tuple[Any, Iterable[Any]]
"""A reading, and the same as tables and lines."""


def watch_arguments(**default: Any) -> list[Argument]:
    """Return ``--watch`` and ``--json``; ``watch`` obeys them. ``default``: see ``add_argument``."""
    about = _("repeat until Ctrl-C; default: every 2 s")
    return [
        arg("--watch", about, nargs="?", type=float, const=2.0, metavar="SECONDS", **default),
        arg("--json", _("print one JSON object; with --watch, one a line"), action="store_true", **default),
    ]


def watch(command: OperatorCommand, look: Callable[[], Report], options: dict[str, Any]) -> None:
    """Show what ``look`` returns, once; with ``--watch`` until Ctrl-C, headed by the time.

    On a terminal the rows stay in place; elsewhere each look follows the one before.
    """
    if options["watch"] is None:
        command.show(*look())
        return
    seconds = checked.seconds("--watch", options["watch"], least=0.2)
    stays = command.stdout.isatty() and not options["json"]
    try:
        with Live(console=command.printer, auto_refresh=False) if stays else nullcontext() as live:
            while True:
                _show(command, look, live)
                interruptible_sleep(seconds)
    except KeyboardInterrupt:
        return  # the way to end it


def _show(command: OperatorCommand, look: Callable[[], Report], live: Live | None) -> None:
    """Show one look; if the database cannot be read, say so instead."""
    now = local_time(datetime.datetime.now(datetime.UTC))
    try:
        data, parts = look()
    except (ResourcePoolError, DatabaseError, InterfaceError) as error:
        connections.close_all()
        data, parts = None, [printable(localized(error))]
    if live:
        live.update(Group(now, *parts), refresh=True)
    elif data is None:
        command.stderr.write(*parts)
    else:
        command.show(data, [now, *parts])
        command.stdout.flush()
