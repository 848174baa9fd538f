"""Cells of a table for spreadsheets: nothing that a spreadsheet would execute, whichever character it splits at."""

import re
from typing import Any

# Some take the wide ones, too; and what stands before it may be cut off.
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # noqa: RUF001
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?")  # a phone number, for example: nothing to execute
_SPLITS = re.compile(r"([;\t\r\n])")  # also inside quotes, if these do not stand where it looks for them


def harmless(value: Any) -> Any:
    """Return what a spreadsheet would take for a formula with a ' before it; numbers and nothing as they are.

    A spreadsheet may split at semicolons and tabs what is separated by commas: a formula behind one gets a ', too.
    """
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    if _NUMBER.fullmatch(text):
        return text
    first, *others = _SPLITS.split(text)
    text = "".join([_quoted(first), *(one if _NUMBER.fullmatch(one) else _quoted(one) for one in others)])
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) else text


def _quoted(part: str) -> str:
    return f"'{part}" if _FORMULA.match(part) else part
