"""Queues as people write them: one by one, or as ranges such as 0..63."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.queues.labels import printable
from resourcepool.queues.models import MAX_QUEUE_ID

MOST_AT_ONCE = 10_000
MOST_SHOWN = 5

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
            raise BadOption("queue", word, f"at most {MOST_AT_ONCE} at once")
    return found


def _expanded(word: str) -> list[str]:
    match = _RANGE.fullmatch(word)
    if not match:
        return [word]
    prefix, first, last = match["prefix"], match["first"], match["last"]
    if int(last) < int(first):
        raise BadOption("queue", word, "a range that goes up, such as 0..63")
    if int(last) - int(first) >= MOST_AT_ONCE:
        raise BadOption("queue", word, f"at most {MOST_AT_ONCE} at once")
    width = len(first) if first.startswith("0") else 1
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def checked_ids(queue_ids: Sequence[str]) -> list[str]:
    """Return these ids if each is valid and occurs once; raises BadOption."""
    checked = [options.text("queue", each, most=MAX_QUEUE_ID) for each in queue_ids]
    if twice := sorted(each for each, count in Counter(checked).items() if count > 1):
        raise BadOption("queue", twice[:MOST_SHOWN], "each queue once")
    if len(checked) > MOST_AT_ONCE:
        raise BadOption("queue", f"{len(checked)} of them", f"at most {MOST_AT_ONCE} at once")
    return checked


def known(task_type: str, queue_ids: Sequence[str], there: Mapping[str, int]) -> list[int]:
    """Return the keys of these queues; raises BadOption, which names missing ones."""
    if missing := [each for each in queue_ids if each not in there]:
        ending = "" if len(missing) == 1 else "s"
        raise BadOption("queue", missing[:MOST_SHOWN], f"{printable(task_type)} has no such queue{ending}")
    return [there[each] for each in queue_ids]
