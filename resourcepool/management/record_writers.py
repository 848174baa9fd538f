"""Writes records as CSV, as a JSON array or as JSON lines, one at a time."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError

from resourcepool.management.layout import as_text, one_line
from resourcepool.translation import gettext as _

PRIVATE = 0o600
MAX_FILE_NAME = 4_096  # characters

Record = dict[str, Any]


class Output(Protocol):
    """A text stream."""

    def write(self, text: str, /) -> Any:
        """Write ``text``."""


def write_csv(
    out: Output, names: Sequence[str], records: Iterable[Record], cell: Callable[[Any], Any] | None = None
) -> int:
    """Write a header and a row for each record; return the number of records. ``cell`` converts each value."""
    writer, count = csv.writer(out), 0  # with its default CR LF it quotes cells with either line end
    writer.writerow(names)
    for count, record in enumerate(records, 1):  # noqa: B007 (counted)
        row = [_text(record[name]) for name in names]
        writer.writerow(map(cell, row) if cell else row)
    return count


def write_json(out: Output, names: Sequence[str], records: Iterable[Record]) -> int:
    """Write an array of objects; return the number of records."""
    count = 0
    out.write("[")
    for count, record in enumerate(records, 1):
        out.write(("" if count == 1 else ",\n") + json.dumps(record, default=as_text))
    out.write("]\n")
    return count


def write_json_lines(out: Output, names: Sequence[str], records: Iterable[Record]) -> int:
    """Write one object per line; return the number of records."""
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007 (counted)
        out.write(json.dumps(record, default=as_text) + "\n")
    return count


@contextmanager
def private_file(name: str) -> Iterator[Output]:
    """Open a new file that only its owner may read; remove it if the block fails.

    Raises:
        CommandError: it exists, or cannot be written.
    """
    path = Path(name)
    try:
        # An existing file may be readable to others, or be a link to another file.
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
