"""Runs a command like an operator, and returns its output and exit code."""

import io
import json
from dataclasses import dataclass
from typing import Any

from django.core.management import CommandError, call_command, execute_from_command_line


@dataclass
class Ran:
    """The output of a command, including its error, and its exit code."""

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
    """Run ``resourcepool_<name>`` with these arguments."""
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
    """Run ``manage.py`` with these arguments in a fork."""
    execute_from_command_line(["manage.py", *words])
