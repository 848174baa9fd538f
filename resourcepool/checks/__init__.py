"""System checks, listed in docs/reference/checks.md; their messages are printed in 80 columns."""

import re
import textwrap

from django.core import checks

WIDTH = 80  # columns
WHOLE = re.compile(r""""[^"]*"|(?<=\s)'[^']*'|manage\.py [^(;]*[^(; ]""")
SPACE = "\0"  # replaces a space within a line that must not be broken there


def wrapped(text: str) -> str:
    """Return ``text`` in lines of ``WIDTH`` columns; quoted texts and commands stay whole, to be copied."""
    return "\n".join(_wrapped_line(line.expandtabs(8)) for line in text.split("\n"))


def _wrapped_line(line: str) -> str:
    whole = WHOLE.sub(lambda part: part[0].replace(" ", SPACE), line)
    lines = textwrap.wrap(
        whole, WIDTH, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(SPACE, " ")


class Error(checks.Error):
    """A problem that stops ``migrate`` and other commands."""

    def __str__(self) -> str:
        return wrapped(super().__str__())


class CheckWarning(checks.Warning):
    """A problem that stops nothing."""

    def __str__(self) -> str:
        return wrapped(super().__str__())
