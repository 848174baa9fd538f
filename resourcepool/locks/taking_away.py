"""Rows that others hold go to those who wait, and the history tells who took them away."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.leases import verbs
from resourcepool.locks.models import AbstractNamed
from resourcepool.signals import Fact, What, tell
from resourcepool.waiting import several

Held = tuple[Any, int, str]  # key, fence, holder

MAX_REASON, MAX_ACTOR = 200, 150  # characters that the history keeps


def take_away(
    connection: BaseDatabaseWrapper, model: type[AbstractNamed], held: Sequence[Held], reason: str, actor: str
) -> list[Any]:
    """Give these rows, in the order of their keys, to those in line; return the keys of those that were held still."""
    freed = list[Any]()
    for _, of_name in groupby(held, key=lambda row: model.name_of(row[0])):
        rows = list(of_name)
        for start in range(0, len(rows), verbs.BATCH):
            some = rows[start : start + verbs.BATCH]
            pairs = [(pk, fence) for pk, fence, _ in some]
            lost = several.release(connection, model, pairs, trusted_until=0.0)
            for pk, fence, holder in some:
                if pk not in lost:
                    freed.append(pk)
                    tell(Fact(What.FREED, model, connection.alias, pk, fence, holder, reason, actor))
    return freed


def said(reason: str, actor: str) -> tuple[str, str]:
    """Return both if each is "" or one line of text, which the history can keep. Raises BadOption."""
    asked = ("reason", reason, MAX_REASON), ("actor", actor, MAX_ACTOR)
    said_reason, said_actor = (
        "" if text == "" else options.text(name, text, most=most) for name, text, most in asked
    )
    return said_reason, said_actor
