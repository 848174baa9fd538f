"""Conditions and barriers in addresses: kind and name as one text."""

from resourcepool.status.locks.kinds import LockKind

KINDS = (LockKind.CONDITION, LockKind.BARRIER)


def put(kind: LockKind, name: str) -> str:
    """Return kind and name as one text, for addresses."""
    return f"{kind.value}:{name}"


def place_of(text: str) -> tuple[LockKind, str] | None:
    """Return the kind and the name in such a text; None: there are none in it."""
    kind, colon, name = text.partition(":")
    return (LockKind(kind), name) if colon and kind in KINDS else None
