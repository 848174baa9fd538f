"""Ids of queues: single ids, and ranges such as 0..63."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.queues.models import MAX_QUEUE_ID
from resourcepool.text import printable
from resourcepool.translation import gettext_noop as _

MAX_QUEUES_AT_ONCE = 10_000
MAX_IDS_SHOWN = 5

_RANGE = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]{1,20})\.\.(?P<last>[0-9]{1,20})")


def expand_ids(words: Iterable[str]) -> list[str]:
    """Expand ranges to ids: "7" is one id, "0..63" are 64, "eu-00..15" are 16.

    Raises:
        BadOption: a range goes backwards, or there are too many ids.
    """
    ids: list[str] = []
    for word in words:
        ids += _expand(word)
        if len(ids) > MAX_QUEUES_AT_ONCE:
            raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE))
    return ids


def _expand(word: str) -> list[str]:
    match = _RANGE.fullmatch(word)
    if not match:
        return [word]
    prefix, first, last = match["prefix"], match["first"], match["last"]
    if int(last) < int(first):
        raise BadOption("queue", word, Sentence(_("an ascending range, such as 0..63")))
    if int(last) - int(first) >= MAX_QUEUES_AT_ONCE:
        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE))
    width = len(first) if first.startswith("0") else 1
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def validate_ids(queue_ids: Sequence[str]) -> list[str]:
    """Return these ids if all are valid and different; raises BadOption."""
    valid = [options.text("queue", each, most=MAX_QUEUE_ID) for each in queue_ids]
    if duplicates := sorted(each for each, count in Counter(valid).items() if count > 1):
        raise BadOption("queue", duplicates[:MAX_IDS_SHOWN], because=Sentence(_("each queue once")))
    if len(valid) > MAX_QUEUES_AT_ONCE:
        allowed = Sentence(_("at most %(count)s at once"), count=MAX_QUEUES_AT_ONCE)
        raise BadOption("queue", f"{len(valid)} of them", allowed)
    return valid


def keys_of(queue_group: str, queue_ids: Sequence[str], key_by_id: Mapping[str, int]) -> list[int]:
    """Return the keys of these queues; raises BadOption, which names the missing ids."""
    if missing := [each for each in queue_ids if each not in key_by_id]:
        singular = Sentence(_("%(queue_group)s has no such queue"), queue_group=printable(queue_group))
        plural = Sentence(_("%(queue_group)s has no such queues"), queue_group=printable(queue_group))
        raise BadOption("queue", missing[:MAX_IDS_SHOWN], because=singular if len(missing) == 1 else plural)
    return [key_by_id[each] for each in queue_ids]
