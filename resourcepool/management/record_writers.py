"""Writes records as CSV, as one JSON array or as JSON lines, one after the other."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError
from django.utils.translation import gettext as _

from resourcepool.management.layout import as_text, one_line

PRIVATE = 0o600
MAX_FILE_NAME = 4_096  # letters of the name of a file

Record = dict[str, Any]


class Output(Protocol):
    """What can be written to."""

    def write(self, text: str, /) -> Any:
        """Take this text."""


def write_csv(
    out: Output, names: Sequence[str], records: Iterable[Record], cell: Callable[[Any], Any] | None = None
) -> int:
    """Write a header and one row a record; return how many. ``cell`` has the last word on each value."""
    writer, count = csv.writer(out), 0  # its line ends, so that it puts both kinds of them in quotes
    writer.writerow(names)
    for count, record in enumerate(records, 1):  # noqa: B007 (counted)
        row = [_text(record[name]) for name in names]
        writer.writerow(map(cell, row) if cell else row)
    return count


def write_json(out: Output, names: Sequence[str], records: Iterable[Record]) -> int:
    """Write one array of objects; return how many."""
    count = 0
    out.write("[")
    for count, record in enumerate(records, 1):
        out.write(("" if count == 1 else ",\n") + json.dumps(record, default=as_text))
    out.write("]\n")
    return count


def write_json_lines(out: Output, names: Sequence[str], records: Iterable[Record]) -> int:
    """Write one object a line; return how many."""
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007 (counted)
        out.write(json.dumps(record, default=as_text) + "\n")
    return count


@contextmanager
def private_file(name: str) -> Iterator[Output]:
    """Open a new file that its owner alone may read; remove it if it does not get finished.

    Raises:
        CommandError: it exists, or cannot be written.
    """
    path = Path(name)
    try:
        # Never over an existing one: it may be readable to others, or a link to somewhere else.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        raise CommandError(_("%s exists; choose another name") % one_line(name, MAX_FILE_NAME)) from None
    except OSError as error:
        raise CommandError(f"{one_line(name, MAX_FILE_NAME)}: {error.strerror or error}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _text(value: Any) -> Any:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else as_text(value)
