"""The language of the commands, and what becomes of text that cannot be shown or read."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _

from resourcepool.management.layout import plain, printable

LONGEST = 500  # letters of a refusal of words that are not understood


class TranslatedCommand(BaseCommand):
    """A command that speaks the language of the project (``LANGUAGE_CODE``); for programs (``--json``), English.

    What the terminal cannot show is "?" there, and so is, in a refusal, whatever would steer it. Words that are no text
    are refused with exit code 2.
    """

    about: Any = ""  # what --help says it does; lazy
    encoding: str | None = None  # of the output; None: the terminal's

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """See ``BaseCommand``."""
        self.help = str(self.about)  # argparse takes no lazy text
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.error = partial(_refuse, parser.error)  # type: ignore[method-assign]
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """See ``BaseCommand``."""
        _take_any_text(self.encoding)
        super().run_from_argv(argv)

    def print_help(self, prog_name: str, subcommand: str) -> None:
        """See ``BaseCommand``."""
        _take_any_text(self.encoding)
        super().print_help(prog_name, subcommand)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """See ``BaseCommand``."""
        with translation.override("en") if options.get("json") else nullcontext():
            for word in _words(options):
                if not _is_text(word):
                    raise CommandError(_("%s is not text in UTF-8") % ascii(word), returncode=2)
            try:
                return super().execute(*args, **options)
            except CommandError as error:
                error.args = (printable(str(error)),)  # it may say again what others have written
                raise


def _refuse(refuse: Callable[[str], NoReturn], message: str) -> NoReturn:
    refuse(plain(message, LONGEST))


def _take_any_text(encoding: str | None) -> None:
    """Let no letter end this program, whatever its terminal can show or its user types."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if encoding and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _words(options: dict[str, Any]) -> Iterator[str]:
    for value in options.values():
        words = value if isinstance(value, list | tuple) else [value]
        yield from (word for word in words if isinstance(word, str))


def _is_text(word: str) -> bool:
    # Python puts a surrogate for each byte of the command line that it cannot read.
    return not any("\ud800" <= letter <= "\udfff" for letter in word)
