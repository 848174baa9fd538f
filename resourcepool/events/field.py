"""Stores a sentence in a column as its code and parameters, and typed text unchanged.

broken again                                typed text
@["late",{"seconds":31}]                    a sentence: its code, and its parameters as JSON
@["check",{"why":["connection_refused"]}]   a sentence within another
@@home                                      "@home", as typed
"""

import json
from typing import Any

from django.db.models.lookups import StartsWith

from resourcepool.events import Sentence, sentence_for
from resourcepool.text import CharField

MARK = "@"
CUT = "…"
MAX_STORED = 500  # characters in the column
LENGTHS = (200, 80, 30, 10, 3)  # characters per parameter, tried until it fits


class SentenceField(CharField):
    """A text that ``localized`` translates if it is a ``Sentence``. Longer text is cut and ends with "…".

    ``reason__code="late"`` matches rows with a sentence of this code.
    """

    def __init__(self, *args: Any, max_length: int = MAX_STORED, **options: Any) -> None:
        super().__init__(*args, **{**options, "max_length": max_length})

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else stored(str(value), self.max_length or MAX_STORED)

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return read(value) if value and value.startswith(MARK) else value


@SentenceField.register_lookup
class HasCode(StartsWith):
    """Whether the sentence has this code."""

    lookup_name = "code"

    def get_prep_lookup(self) -> str:
        return f'{MARK}["{self.rhs}"'

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        return str(connection.operators["startswith"] % rhs)


def stored(text: str, most: int = MAX_STORED) -> str:
    """Return the stored form of ``text``, in at most ``most`` characters."""
    if not isinstance(text, Sentence) or not text.code:
        return cut(f"{MARK}{text}" if text.startswith(MARK) else text, most)
    for length in LENGTHS:
        packed = MARK + json.dumps(_packed(text, length), ensure_ascii=False, separators=(",", ":"))
        if len(packed) <= most:
            return packed
    return cut(text, most)


def read(column: str) -> str:
    """Return the text of a stored value; an unknown code (of another version) is returned with its parameters."""
    if column.startswith(2 * MARK):
        return column[1:]
    try:
        packed = json.loads(column[1:])
        return str(_unpacked(packed)) if isinstance(packed, list) else column
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return column


def cut(text: object, most: int) -> str:
    """Return ``text`` as ``valid`` text of at most ``most`` characters; it ends with "…" if it was cut."""
    full = valid(text)
    return full if len(full) <= most else full[: most - 1] + CUT


def valid(text: object) -> str:
    """Return ``text`` in a form that every database can store: without NUL, and with ? for lone surrogates."""
    full = str(text)
    if not full.isascii():
        full = full.encode("utf-8", "replace").decode()
    return full.replace("\0", "")


def _packed(value: Any, most: int) -> Any:
    if not isinstance(value, Sentence) or not value.code:
        return value if isinstance(value, int | float) else cut(value, most)
    parameters = {name: _packed(parameter, most) for name, parameter in value.parameters.items()}
    return [value.code, parameters] if parameters else [value.code]


def _unpacked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    code, packed = value if value[1:] else (*value, {})
    parameters = {name: _unpacked(parameter) for name, parameter in packed.items()}
    try:
        return sentence_for(code, **parameters)
    except (KeyError, TypeError):
        listed = ", ".join(f"{name}={parameter}" for name, parameter in parameters.items())
        return Sentence("%(text)s", text=f"{code} ({listed})" if listed else str(code))
