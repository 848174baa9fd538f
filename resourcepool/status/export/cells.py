"""Cells that a spreadsheet does not execute, whichever character it splits at."""

import re
from typing import Any

# Some accept full-width characters, or cut off text before a formula.
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # noqa: RUF001
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?")  # such as a phone number, which is not executed
_SPLITS = re.compile(r"([;\t\r\n])")  # inside quotes, too, if they are not where the spreadsheet expects them


def escape_formulas(value: Any) -> Any:
    """Return text that a spreadsheet would take for a formula with a ' before it, and other values unchanged.

    Spreadsheets may also split at semicolons and tabs: a formula after one gets a ', too.
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
