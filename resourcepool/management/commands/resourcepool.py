"""``manage.py resourcepool NOUN VERB``: all commands of this app under one name."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError, CommandParser

from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import CommandGroup
from resourcepool.operations import OPERATIONS
from resourcepool.translation import gettext as _

PREFIX = "resourcepool_"
RESOURCES = "resources"  # the noun of the commands about resources
OF_RESOURCES = ("status", "why", "check", "fix", "close", "import", "export")
COMPLETION = """\
# eval "$(manage.py resourcepool --completion)"
_resourcepool() {
    local at=1
    while [ "$at" -lt "$COMP_CWORD" ] && [ "${COMP_WORDS[at]}" != resourcepool ]; do at=$((at + 1)); done
    case "$((COMP_CWORD - at)):${COMP_WORDS[at + 1]}" in
        1:*) COMPREPLY=($(compgen -W "%(nouns)s" -- "${COMP_WORDS[COMP_CWORD]}")) ;;
%(verbs)s
    esac
}
complete -o default -F _resourcepool manage.py ./manage.py python python3
"""


class Command(BaseCommand):
    help = "Runs any command of this app by a noun and a verb, such as: streams pause oracle"
    requires_system_checks: Any = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Run what a noun and a verb name; that command reads the rest of the line."""
        words = argv[2:]
        if words[:1] == ["--completion"]:
            self.stdout.write(completion())
        elif not words or words[0] in ("--help", "-h", "help"):
            self.stdout.write(overview())
        else:
            try:
                name, *rest = resolve(words)
            except CommandError as error:
                self.stderr.write(str(error))
                sys.exit(error.returncode)
            load_command_class(get_commands()[name], name).run_from_argv([argv[0], name, *rest])

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "words", nargs=argparse.REMAINDER, help="a noun, a verb, and the arguments of that command"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it for ``call_command("resourcepool", "streams", "show")``."""
        call_command(*resolve(options["words"]), stdout=self.stdout, stderr=self.stderr)


def verbs() -> dict[str, tuple[str, ...]]:
    """Return {verb: a command and its first arguments} of the noun "resources"."""
    operations = {name: (f"{PREFIX}operate", name) for name in OPERATIONS}
    return operations | {name: (f"{PREFIX}{name}",) for name in OF_RESOURCES}


def nouns() -> dict[str, list[str]]:
    """Return {noun: its verbs}; a noun without verbs is a command alone."""
    found: dict[str, list[str]] = {RESOURCES: sorted(verbs())}
    for name in sorted(get_commands()):
        if name.startswith(PREFIX):
            command = load_command_class(get_commands()[name], name)
            of_noun = [one.name for one in command.subcommands()] if isinstance(command, CommandGroup) else []
            found[name.removeprefix(PREFIX)] = of_noun
    return found


def resolve(words: Sequence[str]) -> list[str]:
    """Return the command that ``words`` name, and its arguments.

    Raises:
        CommandError: there is no such noun or verb; it lists the existing ones.
    """
    noun, *rest = words
    if noun == RESOURCES:
        known = verbs()
        if not rest or rest[0] not in known:
            raise CommandError(_("%(noun)s: one of %(names)s") % _names(noun, known), returncode=2)
        return [*known[rest[0]], *rest[1:]]
    name = f"{PREFIX}{noun.replace('-', '_')}"
    if name not in get_commands():
        raise CommandError(_("%(noun)s: one of %(names)s") % _names(noun, nouns()), returncode=2)
    return [name, *rest]


def _names(noun: str, known: Any) -> dict[str, str]:
    return {"noun": one_line(noun), "names": ", ".join(known)}


def overview() -> str:
    found = nouns()
    width = max(map(len, found)) + 2
    lines = [f"  {noun:{width}}{' '.join(of_noun)}".rstrip() for noun, of_noun in found.items()]
    head = _("Usage: manage.py resourcepool NOUN [VERB] ..; see each with --help. Nouns and their verbs:")
    return "\n".join([head, *lines])


def completion() -> str:
    """Return a script for bash that completes nouns and verbs."""
    found = nouns()
    cases = [
        f'        2:{noun}) COMPREPLY=($(compgen -W "{" ".join(of_noun)}" -- "${{COMP_WORDS[COMP_CWORD]}}")) ;;'
        for noun, of_noun in found.items()
        if of_noun
    ]
    return COMPLETION % {"nouns": " ".join(found), "verbs": "\n".join(cases)}
