"""Reads the lines of a file that may turn out to be anything."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import ImportRefused

MAX_LINES = 500_000  # which take about half a gigabyte of memory
MAX_BYTES = 100_000_000
MAX_LINE = 100_000

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = "\ufeff"


def label(name: str) -> str:
    """Return what to call the file in messages; a terminal would obey control characters."""
    return "standard input" if name == "-" else "".join(c if c.isprintable() else "?" for c in name)


def lines_of(name: str, stream: BinaryIO | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number, text without its line end) for every line of the file ``name``; "-" is standard input.

    Args:
        stream: where its bytes are read from, if not from the file of this name.

    Raises:
        ImportRefused: it cannot be read, is no UTF-8 text, or is too large.
    """
    try:
        with contextlib.ExitStack() as stack:
            yield from _lines(
                stream or (_stdin() if name == "-" else stack.enter_context(Path(name).open("rb")))
            )
    except OSError as error:
        raise ImportRefused(Sentence(_("cannot be read: %(error)s"), error=error.strerror or error)) from error


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise ImportRefused(Sentence(_("closed")))
    return sys.stdin.buffer


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    size = number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number, size = number + 1, size + len(raw)
        if number == 1 and raw.startswith(_UTF16):
            raise ImportRefused(Sentence(_("UTF-16 text; save it as UTF-8")))
        if number > MAX_LINES or size > MAX_BYTES:
            raise ImportRefused(
                Sentence(
                    _("too large: at most %(count_lines)s lines and %(count_bytes)s MB; split it"),
                    count_lines=f"{MAX_LINES:,}",
                    count_bytes=MAX_BYTES // 1000000,
                )
            )
        text = _text(raw, number)
        yield number, text.removeprefix(_BOM) if number == 1 else text


def _text(raw: bytes, number: int) -> str:
    if b"\0" in raw:
        raise ImportRefused(
            Sentence(
                _("line %(count)s, byte %(count_byte)s is a NUL: this is a binary file, not text"),
                count=number,
                count_byte=raw.index(0) + 1,
            )
        )
    if len(raw) > MAX_LINE:
        raise ImportRefused(
            Sentence(
                _("line %(count)s is longer than %(count_most)s bytes: this is no list of proxies"),
                count=number,
                count_most=f"{MAX_LINE:,}",
            )
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        # Not chained: the error carries the whole line.
        raise ImportRefused(
            Sentence(
                _("line %(count)s, byte %(count_byte)s: %(byte)s is not UTF-8; save the file as UTF-8"),
                count=number,
                count_byte=error.start + 1,
                byte=f"0x{raw[error.start]:02x}",
            )
        ) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r" in text:
        raise ImportRefused(
            Sentence(
                _(
                    "line %(count)s has a carriage return in the middle; save the file with Unix or Windows line ends"
                ),
                count=number,
            )
        )
    return text
