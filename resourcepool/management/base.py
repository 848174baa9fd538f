"""The base class of the operator's commands: language, output, confirmation, errors and exit codes."""

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

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, add
from resourcepool.management.layout import console, one_line, printable_lines, render_text
from resourcepool.status.snapshots import as_data
from resourcepool.text import host_name
from resourcepool.translation import gettext as _, gettext_lazy

# Exit codes as shells report them.
INTERRUPTED = 130
BROKEN_PIPE = 141

MAX_ARGPARSE_ERROR = 500  # characters


class OperatorCommand(BaseCommand):
    """A command whose ``run`` does the work; every error becomes one sentence and an exit code.

    Texts are in the project's language (``LANGUAGE_CODE``), with ``--json`` in English. Characters that the terminal
    cannot show are replaced by "?", and so are control characters in errors.

    Exit code 0: done, or ended by Ctrl-C if the command runs until then; 1: nothing found, refused, or the database
    did not answer; 2: usage error; 130: interrupted. A command with other codes has its own ``exit_codes``.
    """

    about: Any = ""  # the description in --help; lazy
    example = ""  # command lines shown by --help
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 done, or ended by Ctrl-C if it runs until then; 1 nothing found, or refused; 2 usage error;"
        " 130 interrupted."
    )
    interrupted: Any = gettext_lazy("nothing was changed")  # the effect of Ctrl-C
    encoding: str | None = None  # of the output; None: the terminal's
    requires_system_checks: Any = []  # their findings must not block an operator in an emergency

    def arguments(self) -> Iterable[Argument]:
        return ()

    def add_arguments(self, parser: CommandParser) -> None:
        add(parser, self.arguments())

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """See ``BaseCommand``; examples follow the options, and positional arguments may be mixed with options."""
        self.help = str(self.about)  # argparse takes no lazy text
        head = _("Examples:")
        epilog = f"{head}\n{textwrap.indent(self.example, '  ')}\n\n{self.exit_codes}"
        parser = super().create_parser(
            prog_name, subcommand, epilog=epilog, formatter_class=_KeepsLines, **kwargs
        )
        refuse = parser.error
        parser.error = lambda message: refuse(one_line(message, MAX_ARGPARSE_ERROR))  # type: ignore[method-assign]
        if parser._subparsers is None:  # argparse cannot mix options with subcommands
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
            for text in _texts(options):
                # Python replaces each undecodable byte of the command line by a surrogate.
                if any("\ud800" <= letter <= "\udfff" for letter in text):
                    raise CommandError(_("%s is not valid UTF-8") % ascii(text), returncode=2)
            try:
                return super().execute(*args, **options)
            except CommandError as error:
                error.args = (printable_lines(str(error)),)  # it may quote text from the database
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
            raise CommandError(_database_error(error)) from error
        except KeyboardInterrupt:
            text = _("interrupted; %s") % self.interrupted
            raise CommandError(text, returncode=INTERRUPTED) from None
        except BrokenPipeError:
            # The reader has closed the pipe. Without this Python would print an error when it flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(BROKEN_PIPE) from None

    def run(self, **options: Any) -> None:
        raise NotImplementedError

    def show(self, data: Any, parts: Iterable[Any]) -> None:
        """Print ``data`` as JSON with ``--json``, otherwise ``parts``: its tables and lines."""
        text = json.dumps(as_data(data)) if self.as_json else render_text(self.printer, parts)
        if text:
            self.stdout.write(text)

    def note(self, text: str) -> None:
        """Print a line to standard error that is not an error."""
        self.stderr.write(text, style_func=str)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Return if the operator confirms, or passed ``--yes``; raises CommandError otherwise."""
        if yes:
            return
        if not sys.stdin or not sys.stdin.isatty():
            raise CommandError(_("%s Not a terminal: pass --yes to confirm.") % question)
        self.stderr.write(f"{question} [y/N] ", style_func=str, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError(_("not confirmed; nothing was changed"))


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Make SIGTERM act like Ctrl-C unless it has a handler: process 1 of a container would ignore it."""
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
    except (KeyError, OSError):  # a container without user names
        name = f"uid {os.getuid()}"
    text = f"{name[:40]}@{host_name()} (shell)"
    return text.encode(errors="replace").decode()  # databases refuse surrogates


def _database_error(error: Exception) -> str:
    connected = connections.all(initialized_only=True)
    if any(dialect.error_kind(connection, error) is ErrorKind.NOT_MIGRATED for connection in connected):
        return _("database error: %s; run `manage.py migrate`") % error
    return _("database error: %s; check it with `manage.py resourcepool_doctor`") % error


class _KeepsLines(DjangoHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _take_any_text(encoding: str | None) -> None:
    """Replace characters that the terminal cannot show or Python cannot decode, instead of failing."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if encoding and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _texts(options: dict[str, Any]) -> Iterator[str]:
    for value in options.values():
        values = value if isinstance(value, list | tuple) else [value]
        yield from (text for text in values if isinstance(text, str))
