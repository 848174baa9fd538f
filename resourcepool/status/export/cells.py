"""Cells for spreadsheets: nothing that a spreadsheet would execute, whichever character it splits at."""

import re
from typing import Any

# Some also accept full-width characters; and text before a formula may be cut off.
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # noqa: RUF001
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?")  # a phone number, for example, which is not executed
_SPLITS = re.compile(r"([;\t\r\n])")  # also inside quotes, if these are not where the spreadsheet expects them


def harmless(value: Any) -> Any:
    """Return a text that a spreadsheet would take for a formula with a ' before it; all other values unchanged.

    A spreadsheet may split comma-separated text at semicolons and tabs, too: a formula behind one also gets a '.
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
