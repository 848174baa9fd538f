"""The language of the commands."""

from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import translation


class TranslatedCommand(BaseCommand):
    """A command that speaks the language of the project (``LANGUAGE_CODE``); for programs (``--json``), English."""

    about: Any = ""  # what --help says it does; lazy

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """See ``BaseCommand``."""
        self.help = str(self.about)  # argparse takes no lazy text
        return super().create_parser(prog_name, subcommand, **kwargs)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """See ``BaseCommand``."""
        with translation.override("en") if options.get("json") else nullcontext():
            return super().execute(*args, **options)
