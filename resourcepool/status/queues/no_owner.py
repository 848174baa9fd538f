"""Why no server gets a queue, in words, without I/O."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from resourcepool.labels import printable, spelled


@dataclass(frozen=True, slots=True)
class PossibleOwner:
    """A living server. ``is_full``: whether it has as many queues as its limit allows."""

    labels: Mapping[str, str]
    is_draining: bool = False
    is_full: bool = False
    name: str = ""


def why_nobody(labels: Mapping[str, str], candidates: Iterable[PossibleOwner], pin: str = "") -> str:
    """Return why none of these may have a queue that requires ``labels`` and is pinned to the name ``pin``."""
    there = list(candidates)
    if not there:
        return _("no server is up")
    able = [one for one in there if labels.items() <= one.labels.items()]
    if not able:
        return _lacks(labels, there)
    up = [one for one in able if not one.is_draining]
    if not up:
        return _("every server that may have it is draining")
    if all(one.is_full for one in up):
        no_room = _("pinned to %(server)s, which has no room") % {"server": printable(pin)}
        why = _("every server that may have it has as many queues as its limit allows")
        return f"{no_room}; {why}" if pin in {one.name for one in up if one.name} else why
    return _("the servers have not shared it yet; a transaction may keep its row locked")


def _lacks(labels: Mapping[str, str], there: Collection[PossibleOwner]) -> str:
    nowhere = {
        key: value for key, value in labels.items() if all(one.labels.get(key) != value for one in there)
    }
    text = _("no living server has %s") if nowhere else _("no living server has all of %s")
    return text % printable(spelled(nowhere or labels))
