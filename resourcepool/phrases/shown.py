"""What the program itself has written down, in the reader's language.

Rows, events, errors and log lines are in English whoever caused them, so that they can be searched, compared and sent
to somebody else. Only when a page or a command shows one is it translated, by the sentences of ``book``; what
people have written is none of these and stays as it is.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from django.utils.translation import get_language, gettext

from resourcepool.phrases.book import AFTER_A_NAME, BETWEEN, PHRASES

MOST = 4_000  # characters; a longer text is none of ours
DEPTH = 3  # the reason of an error in the result of a job

_PLACE = re.compile(r"%\((\w+)\)s")


def shown(text: object) -> str:
    """Return ``text`` in the language of whoever reads it if the program has written it; else as it is."""
    said, language = str(text), get_language() or "en"
    return said if language.startswith("en") or len(said) > MOST else _shown(said, language)


@lru_cache(maxsize=2_000)
def _shown(text: str, language: str) -> str:
    return _translated(text, DEPTH) or text


def _translated(text: str, depth: int) -> str | None:
    """Return the translation of a phrase, or of a list that has nothing but phrases; None: it is neither."""
    found = (_filled(phrase, match, depth) for phrase, match in _matches(text))
    lists = (_list(text, between, depth - 1) for between in BETWEEN if depth and between in text)
    return next((one for some in (found, lists) for one in some if one), None)


def _filled(phrase: str, match: re.Match[str], depth: int) -> str | None:
    """Return the translation of ``phrase``; in the place "why", there may be a phrase again."""
    places = match.groupdict()
    if "why" in places:
        inner = _translated(places["why"], depth - 1) if depth else None
        if inner is None and phrase in AFTER_A_NAME:
            return None
        places["why"] = inner or places["why"]
    return gettext(phrase) % places


def _list(text: str, between: str, depth: int) -> str | None:
    found = []
    for item in text.split(between):
        bare = item.lstrip()
        translated = _translated(bare, depth)
        if translated is None:
            return None
        found.append(item[: len(item) - len(bare)] + translated)
    return gettext(between).join(found)


def _matches(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for phrase, known in _patterns():
        if match := known.fullmatch(text):
            yield phrase, match


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(phrase, pattern(phrase)) for phrase in PHRASES]


def pattern(phrase: str) -> re.Pattern[str]:
    """Return what recognises ``phrase``; its places named "count.." stand for numbers, the others for any text."""
    parts = _PLACE.split(phrase)  # text, name, text, name, .. text
    shapes = (
        f"(?P<{part}>{_shape(part)})" if number % 2 else re.escape(part.replace("%%", "%"))
        for number, part in enumerate(parts)
    )
    return re.compile("".join(shapes), re.DOTALL)


def _shape(place: str) -> str:
    if place.startswith("count"):
        return "[0-9][0-9,]*"
    return "[^,;]+?" if place == "name" else ".+?"  # a name must not swallow the items of a list before it
