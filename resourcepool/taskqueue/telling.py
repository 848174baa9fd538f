"""What the history is told of work: what operators do, and what is given up (docs/history.md).

What ends well, or is tried again by itself, is told of nowhere: there is too much of it.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Value

from resourcepool.events import say
from resourcepool.signals import Fact, What, tell

CHUNK = 1_000  # rows in a statement


class _NotAll(Exception):
    """Some rows had changed meanwhile."""


def counted(tasks: int) -> str:
    """Return "1 task" or "7 tasks", for a log."""
    return f"{tasks} task" if tasks == 1 else f"{tasks} tasks"


def about(name: str, why: str) -> str:
    """Return the reason of an event of a unit of work: which one it is, and ``why``."""
    return say("about", name=name, why=why) if why else name


def changed(rows: Any, what: What, actor: str, why: str, /, **changes: Any) -> int:
    """Make ``changes`` to these rows, which no longer match then, and tell of each; returns how many."""
    rows._for_write = True
    using = rows.db
    if not what.is_heard(rows.model):
        return int(rows.update(**changes))
    fence = F("fence") if hasattr(rows.model, "fence") else Value(0)
    columns = ("pk", fence, *getattr(rows.model, "named_by", ()))
    found = {row[0]: row[1:] for row in rows.using(using).values_list(*columns)}
    pks, done = list(found), 0
    with transaction.atomic(using=using):
        for start in range(0, len(pks), CHUNK):
            for pk in _changed(rows.using(using), pks[start : start + CHUNK], changes):
                at, *named = found[pk]
                reason = about("/".join(named), why) if named else why
                tell(Fact(what, rows.model, using, pk, at, reason=reason, actor=actor))
                done += 1
    return done


def _changed(rows: Any, pks: Sequence[Any], changes: dict[str, Any]) -> list[Any]:
    """Change those of the rows with these keys that still match; return their keys."""
    try:
        with transaction.atomic(using=rows.db):
            if rows.filter(pk__in=pks).update(**changes) != len(pks):
                raise _NotAll  # noqa: TRY301 (it rolls the block back)
    except _NotAll:  # somebody was faster with some of them: one by one it is known with which
        return [pk for pk in pks if rows.filter(pk=pk).update(**changes)]
    return list(pks)
