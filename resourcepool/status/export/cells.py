"""Escapes text that a spreadsheet would execute as a formula, whichever character it splits at."""

import re
from typing import Any

# Some spreadsheets accept full-width characters, or cut off text before a formula.
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # noqa: RUF001
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?")  # such as a phone number; it is not executed
_SPLITS = re.compile(r"([;\t\r\n])")  # also inside quotes that the spreadsheet does not expect


def escape_formulas(value: Any) -> Any:
    """Return text that looks like a formula with a ' before it, and other values unchanged.

    A formula after a semicolon or tab, where spreadsheets may split, gets a ' too.
    """
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    if _NUMBER.fullmatch(text):
        return text
    first, *others = _SPLITS.split(text)
    text = "".join([_quoted(first), *(part if _NUMBER.fullmatch(part) else _quoted(part) for part in others)])
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) else text


def _quoted(part: str) -> str:
    return f"'{part}" if _FORMULA.match(part) else part
