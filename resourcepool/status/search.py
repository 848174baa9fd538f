"""Finds a resource by key, name or address, or a holder by name, host or process."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import CharField, IntegerField, Q

from resourcepool.proxies.fields import address
from resourcepool.resources.import_file import BadField
from resourcepool.resources.registry import all_resources
from resourcepool.resources.selectors import TagsField, selectable
from resourcepool.status.resources.holders import host_and_pid
from resourcepool.status.snapshots import fetch_all, read_each
from resourcepool.waiting.models import Ticket

_WORDS = re.compile(r"\[[^\]]*\]|[^\s/@:\[\]]+")


@dataclass(frozen=True, slots=True)
class Matches:
    """Matching resources, and names of holders that have a lease or wait; up to ``limit`` of each.

    Attributes:
        more: there are others.
        process: "host/pid" if the text is a process, whose threads are ``holders``.
    """

    resources: list[Any] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)
    more: bool = False
    process: str = ""


def find(text: str, models: Sequence[Any], limit: int = 10) -> Matches:
    """Return the exact matches of ``text``; else matches of all its words; else rows that contain it.

    Raises:
        NotMigrated: no pool has a table.
    """
    text = without_password(text.strip())
    whole = text.rstrip("/")
    is_part_of = Q(holder__startswith=f"{whole}/")  # processes of this host, threads of this process
    for of_rows, of_holders in (
        (_exactly, Q(holder=text)),
        (_by_words, is_part_of),
        (_loosely, Q(holder__icontains=text)),
    ):
        read = partial(_in_one, text=text, of_rows=of_rows, of_holders=of_holders, limit=limit)
        matches = read_each(models, read).values()
        rows = [row for some, _ in matches for row in some]
        names = {name for _, some in matches for name in some}
        if rows or names:
            is_process = of_holders is is_part_of and not rows and host_and_pid(f"{whole}//")[0]
            has_more = len(rows) > limit or len(names) > limit
            return Matches(rows[:limit], sorted(names)[:limit], has_more, whole if is_process else "")
    return Matches()


def named(model: Any, text: str) -> Q | None:
    """Return a condition on rows with ``text`` as key or address; None if it is neither."""
    key = _key(model, text)
    address_ = _by_words(model, without_password(text)) if ":" in text else None
    return key | address_ if key and address_ else key or address_


def _in_one(model: Any, *, text: str, of_rows: Any, of_holders: Q, limit: int) -> tuple[list[Any], set[str]]:
    rows, names = all_resources(model), set[str]()
    tickets = Ticket.objects.using(model.pool.using).filter(is_waiting=True).for_rows_of(model)
    for some in (rows, tickets):
        held = some.held().filter(of_holders).order_by("holder").values_list("holder", flat=True)
        names.update(fetch_all(held.distinct()[: limit + 1]))
    condition = of_rows(model, text)
    return [] if condition is None else fetch_all(rows.filter(condition).order_by("pk")[: limit + 1]), names


def without_password(text: str) -> str:
    """Return ``text``; without its password if it is a proxy's address."""
    try:
        parts = address(text)
    except BadField:
        return re.sub(r"//.*@", "//", text)
    if not parts.get("password"):
        return text
    scheme = f"{parts['scheme']}://" if "scheme" in parts else ""
    return f"{scheme}{parts.get('username', '')}@{parts['host']}:{parts['port']}".rstrip(":")


def _exactly(model: Any, text: str) -> Q | None:
    condition, key = _any_field(model, text, "exact", numbers=False), _key(model, text)
    return key | condition if key else condition


def _key(model: Any, text: str) -> Q | None:
    try:
        return Q(pk=model._meta.pk.to_python(text))
    except (ValidationError, ValueError, TypeError):
        return None


def _by_words(model: Any, text: str, lookup: str = "exact") -> Q | None:
    words = [word.strip("[]") for word in _WORDS.findall(text)]
    words = [word for word in words if word.strip("*")]  # a masked password is ***
    return Q(*(_any_field(model, word, lookup) for word in words[:10])) if words else None


_loosely = partial(_by_words, lookup="icontains")


def _any_field(model: Any, word: str, lookup: str, *, numbers: bool = True) -> Q:
    condition, is_number = Q(pk__in=[]), numbers and word.isascii() and word.isdecimal()
    for name, column in selectable(model).items():
        if isinstance(column, CharField) and not isinstance(column, TagsField):
            condition |= Q((f"{name}__{lookup}", word)) | Q((f"{name}__{lookup}", word.lower()))
        elif is_number and isinstance(column, IntegerField) and not column.primary_key and name != "weight":
            condition |= Q((name, int(word[:18])))
    return condition
