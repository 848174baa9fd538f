"""Reads the lines of a file that may turn out to be anything."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

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
        raise ImportRefused(f"cannot be read: {error.strerror or error}") from error


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise ImportRefused("closed")
    return sys.stdin.buffer


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    size = number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number, size = number + 1, size + len(raw)
        if number == 1 and raw.startswith(_UTF16):
            raise ImportRefused("UTF-16 text; save it as UTF-8")
        if number > MAX_LINES or size > MAX_BYTES:
            raise ImportRefused(
                f"too large: at most {MAX_LINES:,} lines and {MAX_BYTES // 1_000_000} MB; split it"
            )
        text = _text(raw, number)
        yield number, text.removeprefix(_BOM) if number == 1 else text


def _text(raw: bytes, number: int) -> str:
    if b"\0" in raw:
        raise ImportRefused(f"line {number}, byte {raw.index(0) + 1} is a NUL: this is a binary file, not text")
    if len(raw) > MAX_LINE:
        raise ImportRefused(f"line {number} is longer than {MAX_LINE:,} bytes: this is no list of proxies")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        # Not chained: the error carries the whole line.
        raise ImportRefused(
            f"line {number}, byte {error.start + 1}: 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r" in text:
        raise ImportRefused(
            f"line {number} has a carriage return in the middle; save the file with Unix or Windows line ends"
        )
    return text
