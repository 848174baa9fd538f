"""What the history is told of streams and tasks: what operators do, and which tasks are given up (docs/history.md).

A task that ends well, and one that is tried again by itself, is told of nowhere: there are too many of them.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from resourcepool.events import say
from resourcepool.signals import Fact, What, tell

CHUNK = 1_000  # rows in a statement


class _NotAll(Exception):
    """Some rows had changed meanwhile."""


def counted(tasks: int) -> str:
    """Return "1 task" or "7 tasks", for a log."""
    return f"{tasks} task" if tasks == 1 else f"{tasks} tasks"


def of_task(stream: str, key: str, why: str) -> str:
    """Return the reason of an event of a task: which one it is, and ``why``."""
    name = f"{stream}/{key}"
    return say("about", name=name, why=why) if why else name


def changed(rows: Any, what: What, actor: str, why: str, **changes: Any) -> int:
    """Make ``changes`` to these streams or tasks, which no longer match then, and tell of each; returns how many."""
    rows._for_write = True
    using = rows.db
    if not what.is_heard(rows.model):
        return int(rows.update(**changes))
    is_task = rows.model._meta.model_name == "task"
    columns = ("pk", "fence", "stream_id", "key") if is_task else ("pk", "fence")
    found = {row[0]: row[1:] for row in rows.using(using).values_list(*columns)}
    pks, done = list(found), 0
    with transaction.atomic(using=using):
        for start in range(0, len(pks), CHUNK):
            for pk in _changed(rows.using(using), pks[start : start + CHUNK], changes):
                fence, *named = found[pk]
                reason = of_task(named[0], named[1], why) if named else why
                tell(Fact(what, rows.model, using, pk, fence, reason=reason, actor=actor))
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
