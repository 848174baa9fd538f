"""Runs a command as an operator would, and returns what is seen."""

import io
import json
from dataclasses import dataclass
from typing import Any

from django.core.management import CommandError, call_command, execute_from_command_line


@dataclass
class Ran:
    """What a command printed, the sentence of its refusal included, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


def run(name: str, *words: Any) -> Ran:
    """Run ``resourcepool_<name>`` with these words."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(f"resourcepool_{name}", *map(str, words), stdout=out, stderr=err)
    except CommandError as error:
        err.write(f"{error}\n")
        code = error.returncode
    except SystemExit as end:
        code = int(end.code or 0)
    return Ran(out.getvalue(), err.getvalue(), code)


def manage(*words: str) -> None:
    """Be ``manage.py`` with these words: for a fork, which ends and speaks as the program does."""
    execute_from_command_line(["manage.py", *words])
