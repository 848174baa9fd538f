"""Queues as people write them: one by one, or as ranges such as 0..63."""

import re
from collections.abc import Iterable

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption

MOST_AT_ONCE = 10_000

_RANGE = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]{1,9})\.\.(?P<last>[0-9]{1,9})")


def queue_ids(words: Iterable[str]) -> list[str]:
    """Return the ids that these words name: "7" is one, "0..63" are 64, "eu-00..15" are 16.

    Raises:
        BadOption: a range goes backwards, or there are too many.
    """
    found: list[str] = []
    for word in words:
        found += _expanded(word)
        if len(found) > MOST_AT_ONCE:
            raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MOST_AT_ONCE))
    return found


def _expanded(word: str) -> list[str]:
    match = _RANGE.fullmatch(word)
    if not match:
        return [word]
    prefix, first, last = match["prefix"], match["first"], match["last"]
    if int(last) < int(first):
        raise BadOption("queue", word, Sentence(_("a range that goes up, such as 0..63")))
    if int(last) - int(first) >= MOST_AT_ONCE:
        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MOST_AT_ONCE))
    width = len(first) if first.startswith("0") else 1
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]
