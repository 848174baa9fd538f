"""Keeps a sentence in a column as its code and parameters, and typed text unchanged.

broken again                                typed text
@["late",{"seconds":31}]                    a sentence: its code, and its parameters as JSON
@["check",{"why":["connection_refused"]}]   a sentence within another
@@home                                      "@home", as typed
"""

import json
from typing import Any

from django.db.models.lookups import StartsWith

from resourcepool.events.sentence import Sentence, sentence_for
from resourcepool.text import CharField

MARK = "@"
CUT = "…"
MOST = 500  # characters, as it is stored
LENGTHS = (200, 80, 30, 10, 3)  # characters of a parameter, if it does not fit otherwise


class SentenceField(CharField):
    """A text that ``localized`` translates if the program wrote it. Longer text is cut, with a mark.

    ``reason__code="late"`` finds the rows with a sentence of this code.
    """

    def __init__(self, *args: Any, max_length: int = MOST, **options: Any) -> None:
        super().__init__(*args, **{**options, "max_length": max_length})

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else stored(str(value), self.max_length or MOST)

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


def stored(text: str, most: int = MOST) -> str:
    """Return ``text`` as it is stored, in at most ``most`` characters."""
    if not isinstance(text, Sentence) or not text.code:
        return cut(f"{MARK}{text}" if text.startswith(MARK) else text, most)
    for length in LENGTHS:
        said = MARK + json.dumps(_packed(text, length), ensure_ascii=False, separators=(",", ":"))
        if len(said) <= most:
            return said
    return cut(text, most)


def read(said: str) -> str:
    """Return the stored text; an unknown code (of another version) is shown with its parameters."""
    if said.startswith(2 * MARK):
        return said[1:]
    try:
        packed = json.loads(said[1:])
        return str(_unpacked(packed)) if isinstance(packed, list) else said
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return said


def cut(text: object, most: int) -> str:
    """Return ``text`` as ``valid`` text of at most ``most`` characters, with a mark if it was cut."""
    said = valid(text)
    return said if len(said) <= most else said[: most - 1] + CUT


def valid(text: object) -> str:
    """Return ``text`` as text that every database stores: without NUL, and with ? for lone surrogates."""
    said = str(text)
    if not said.isascii():
        said = said.encode("utf-8", "replace").decode()
    return said.replace("\0", "")


def _packed(value: Any, most: int) -> Any:
    if not isinstance(value, Sentence) or not value.code:
        return value if isinstance(value, int | float) else cut(value, most)
    parameters = {name: _packed(one, most) for name, one in value.parameters.items()}
    return [value.code, parameters] if parameters else [value.code]


def _unpacked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    code, packed = value if value[1:] else (*value, {})
    parameters = {name: _unpacked(one) for name, one in packed.items()}
    try:
        return sentence_for(code, **parameters)
    except (KeyError, TypeError):
        listed = ", ".join(f"{name}={one}" for name, one in parameters.items())
        return Sentence("%(said)s", said=f"{code} ({listed})" if listed else str(code))
