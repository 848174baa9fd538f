"""What the operator's commands have in common: how they end, whom they name as the actor, how they ask first."""

import getpass
import json
import os
import socket
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser, DjangoHelpFormatter
from django.db import DatabaseError, InterfaceError, connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import dialect
from resourcepool.dialect import Trouble
from resourcepool.events import shown
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.layout import console, rendered
from resourcepool.management.translated import TranslatedCommand
from resourcepool.status.reading import as_data

INTERRUPTED = 130  # what shells call a process that Ctrl-C has ended
BROKEN_PIPE = 141  # and one whose reader has gone away
WIDTH = 100


class OperatorCommand(TranslatedCommand):
    """A command that ends with one sentence and a code, whatever happens; ``run`` is what it does.

    Exit code 0: done; 1: nothing found, refused, or the database did not answer; 2: words it does not understand;
    130: interrupted. One with other codes says so in ``codes``.
    """

    example = ""  # lines to type, shown by --help
    codes: Any = gettext_lazy(
        "Exit codes: 0 done; 1 nothing found, or refused; 2 not understood; 130 interrupted."
    )
    interrupted: Any = gettext_lazy("nothing was changed")  # what Ctrl-C leaves behind
    requires_system_checks = []  # what they find is not what stands in the way at 3 a.m.

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """See ``BaseCommand``; with the examples below the options, and words in any order among these."""
        head = _("Examples:")
        epilog = f"{head}\n{textwrap.indent(self.example, '  ')}\n\n{self.codes}"
        parser = super().create_parser(
            prog_name, subcommand, epilog=epilog, formatter_class=_KeepsLines, **kwargs
        )
        if parser._subparsers is None:  # which argparse cannot mix
            parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
        return parser

    def handle(self, *args: Any, **options: Any) -> None:
        colors = {name: bool(options.get(name)) for name in ("no_color", "force_color")}
        self.as_json, self.printer = bool(options.get("json")), console(self.stdout._out, **colors)
        try:
            self.run(**options)
        except ResourcePoolError as error:
            raise CommandError(shown(error)) from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(_said(error)) from error
        except KeyboardInterrupt:
            told = _("interrupted; %s") % self.interrupted
            raise CommandError(told, returncode=INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read has seen enough. Python would complain once more when it closes its output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None

    def run(self, **options: Any) -> None:
        """Do it."""
        raise NotImplementedError

    def show(self, data: Any, parts: Iterable[Any]) -> None:
        """Print a reading: with ``--json`` the reading itself, otherwise its tables and lines."""
        text = json.dumps(as_data(data)) if self.as_json else rendered(self.printer, parts)
        if text:
            self.stdout.write(text)

    def ask(self, question: str, *, yes: bool) -> None:
        """Go on only if the operator says so, or has said ``--yes``; raises CommandError."""
        if yes:
            return
        if not sys.stdin or not sys.stdin.isatty():
            raise CommandError(_("%s Nobody is here to be asked: add --yes.") % question)
        self.stderr.write(f"{question} [y/N] ", style_func=str, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError(_("not confirmed; nothing was changed"))


def _said(error: Exception) -> str:
    connected = connections.all(initialized_only=True)
    if any(dialect.trouble(one, error) is Trouble.NOT_MIGRATED for one in connected):
        return _("the database says: %s; run `manage.py migrate`") % error
    return _("the database says: %s; `manage.py resourcepool_doctor` examines it") % error


class _KeepsLines(DjangoHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def actor() -> str:
    """Return who is at this keyboard, for the history: "alice@host (shell)"."""
    try:
        name = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # containers know no names
        name = f"uid {os.getuid()}"
    said = f"{name[:40]}@{socket.gethostname()[:80]} (shell)"
    return said.encode(errors="replace").decode()  # no database takes a byte that is no letter
