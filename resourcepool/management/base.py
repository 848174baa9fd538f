"""What the operator's commands have in common: their language, how they end, whom they name, how they ask first."""

import getpass
import io
import json
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from django.db import DatabaseError, InterfaceError, connections
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import dialect
from resourcepool.dialect import ErrorKind
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.labels import host_name
from resourcepool.management.arguments import Argument, add
from resourcepool.management.layout import console, one_line, printable, render_text
from resourcepool.status.snapshots import as_data

INTERRUPTED = 130  # what shells call a process that Ctrl-C has ended
BROKEN_PIPE = 141  # and one whose reader has gone away
LONGEST = 500  # characters of an error of argparse


class OperatorCommand(BaseCommand):
    """A command that ends with one sentence and a code, whatever happens; ``run`` is what it does.

    It speaks the language of the project (``LANGUAGE_CODE``); for programs (``--json``), English. A character that the
    terminal cannot show is "?" there, and so is, in a refusal, one that would steer it.

    Exit code 0: done, or Ctrl-C ended what runs until then; 1: nothing found, refused, or the database did not answer;
    2: words it does not understand, or that are not text; 130: interrupted. One with other codes says so in ``exit_codes``.
    """

    about: Any = ""  # what --help says it does; lazy
    example = ""  # lines to type, shown by --help
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 done, or ended by Ctrl-C if it runs until then; 1 nothing found, or refused; 2 not understood;"
        " 130 interrupted."
    )
    interrupted: Any = gettext_lazy("nothing was changed")  # what Ctrl-C leaves behind
    encoding: str | None = None  # of the output; None: the terminal's
    requires_system_checks: Any = []  # what they find is not what stands in the way at 3 a.m.

    def arguments(self) -> Iterable[Argument]:
        """Return what can be typed after the name of the command."""
        return ()

    def add_arguments(self, parser: CommandParser) -> None:
        add(parser, self.arguments())

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """See ``BaseCommand``; with the examples below the options, and words in any order among these."""
        self.help = str(self.about)  # argparse takes no lazy text
        head = _("Examples:")
        epilog = f"{head}\n{textwrap.indent(self.example, '  ')}\n\n{self.exit_codes}"
        parser = super().create_parser(
            prog_name, subcommand, epilog=epilog, formatter_class=_KeepsLines, **kwargs
        )
        refuse = parser.error
        parser.error = lambda message: refuse(one_line(message, LONGEST))  # type: ignore[method-assign]
        if parser._subparsers is None:  # which argparse cannot mix
            parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        _take_any_text(self.encoding)
        super().run_from_argv(argv)

    def print_help(self, prog_name: str, subcommand: str) -> None:
        _take_any_text(self.encoding)
        super().print_help(prog_name, subcommand)

    def execute(self, *args: Any, **options: Any) -> str | None:
        with translation.override("en") if options.get("json") else nullcontext():
            for word in _words(options):
                # Python puts a surrogate for each byte of the command line that it cannot read.
                if any("\ud800" <= letter <= "\udfff" for letter in word):
                    raise CommandError(_("%s is not text in UTF-8") % ascii(word), returncode=2)
            try:
                return super().execute(*args, **options)
            except CommandError as error:
                error.args = (printable(str(error)),)  # it may say again what others have written
                raise

    def handle(self, *args: Any, **options: Any) -> None:
        colors = {name: bool(options.get(name)) for name in ("no_color", "force_color")}
        self.as_json, self.printer = bool(options.get("json")), console(self.stdout._out, **colors)
        try:
            with _sigterm_as_ctrl_c():
                self.run(**options)
        except ResourcePoolError as error:
            raise CommandError(localized(error)) from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(_said(error)) from error
        except KeyboardInterrupt:
            told = _("interrupted; %s") % self.interrupted
            raise CommandError(told, returncode=INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has seen enough. Python would complain once more when it closes its output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None

    def run(self, **options: Any) -> None:
        raise NotImplementedError

    def show(self, data: Any, parts: Iterable[Any]) -> None:
        """Print a reading: with ``--json`` the reading itself, otherwise its tables and lines."""
        text = json.dumps(as_data(data)) if self.as_json else render_text(self.printer, parts)
        if text:
            self.stdout.write(text)

    def note(self, text: str) -> None:
        """Print a line to standard error that is no error."""
        self.stderr.write(text, style_func=str)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Return if the operator confirms, or has given ``--yes``; raises CommandError."""
        if yes:
            return
        if not sys.stdin or not sys.stdin.isatty():
            raise CommandError(_("%s Nobody is here to be asked: add --yes.") % question)
        self.stderr.write(f"{question} [y/N] ", style_func=str, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError(_("not confirmed; nothing was changed"))


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does, unless somebody handles it: process 1 of a container would ignore it."""
    is_unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    is_ours = is_unhandled and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def actor() -> str:
    """Return the operator's name for the history: "alice@host (shell)"."""
    try:
        name = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # containers know no names
        name = f"uid {os.getuid()}"
    said = f"{name[:40]}@{host_name()} (shell)"
    return said.encode(errors="replace").decode()  # no database takes a byte that is no letter


def _said(error: Exception) -> str:
    connected = connections.all(initialized_only=True)
    if any(dialect.error_kind(one, error) is ErrorKind.NOT_MIGRATED for one in connected):
        return _("the database says: %s; run `manage.py migrate`") % error
    return _("the database says: %s; `manage.py resourcepool_doctor` examines it") % error


class _KeepsLines(DjangoHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _take_any_text(encoding: str | None) -> None:
    """Replace characters that the terminal cannot show or Python cannot read, instead of failing."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if encoding and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _words(options: dict[str, Any]) -> Iterator[str]:
    for value in options.values():
        words = value if isinstance(value, list | tuple) else [value]
        yield from (word for word in words if isinstance(word, str))
