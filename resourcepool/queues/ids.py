"""Ids of queues: single ones, or ranges such as 0..63."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.labels import printable
from resourcepool.queues.models import MAX_QUEUE_ID

MAX_QUEUES_AT_ONCE = 10_000
MAX_IDS_SHOWN = 5

_RANGE = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]{1,20})\.\.(?P<last>[0-9]{1,20})")


def queue_ids(words: Iterable[str]) -> list[str]:
    """Return the ids that these words name: "7" is one, "0..63" are 64, "eu-00..15" are 16.

    Raises:
        BadOption: a range goes backwards, or there are too many.
    """
    found: list[str] = []
    for word in words:
        found += _expanded(word)
        if len(found) > MAX_QUEUES_AT_ONCE:
            raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE))
    return found


def _expanded(word: str) -> list[str]:
    match = _RANGE.fullmatch(word)
    if not match:
        return [word]
    prefix, first, last = match["prefix"], match["first"], match["last"]
    if int(last) < int(first):
        raise BadOption("queue", word, Sentence(_("a range that goes up, such as 0..63")))
    if int(last) - int(first) >= MAX_QUEUES_AT_ONCE:
        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE))
    width = len(first) if first.startswith("0") else 1
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def checked_ids(queue_ids: Sequence[str]) -> list[str]:
    """Return these ids if all are valid and different; raises BadOption."""
    checked = [options.text("queue", each, most=MAX_QUEUE_ID) for each in queue_ids]
    if twice := sorted(each for each, count in Counter(checked).items() if count > 1):
        raise BadOption("queue", twice[:MAX_IDS_SHOWN], because=Sentence(_("each queue once")))
    if len(checked) > MAX_QUEUES_AT_ONCE:
        allowed = Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE)
        raise BadOption("queue", f"{len(checked)} of them", allowed)
    return checked


def known(queue_group: str, queue_ids: Sequence[str], there: Mapping[str, int]) -> list[int]:
    """Return the keys of these queues; raises BadOption, which names missing ones."""
    if missing := [each for each in queue_ids if each not in there]:
        one = Sentence(_("%(queue_group)s has no such queue"), queue_group=printable(queue_group))
        several = Sentence(_("%(queue_group)s has no such queues"), queue_group=printable(queue_group))
        raise BadOption("queue", missing[:MAX_IDS_SHOWN], because=one if len(missing) == 1 else several)
    return [there[each] for each in queue_ids]
