"""Writes a plan to the database: all of it, or nothing."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from django.db import IntegrityError, connections
from django.utils.translation import gettext_noop as _

from resourcepool.database.open_transaction import limit_silence
from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import brief
from resourcepool.events import Sentence
from resourcepool.exceptions import DatabaseUnavailable, ImportRefused
from resourcepool.proxies.import_plan import ImportPlan
from resourcepool.proxies.models import Proxy
from resourcepool.proxies.reading import Tell
from resourcepool.proxies.table import ProxyTable
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status

BATCH = 500  # SQLite may allow only 999 values in a list; MariaDB takes statements of 16 MB

Item = TypeVar("Item")


def store(plan: ImportPlan, using: str, reason: str, tell: Tell, actor: str = "") -> int:
    """Do what ``plan`` says in one transaction; returns how many proxies ``actor`` has retired, for ``reason``.

    No lease is touched: what is held and retired, or changed, stays with its holder.

    Raises:
        ImportRefused: somebody else has entered one of the same proxies meanwhile.
        DatabaseUnavailable: rows stayed locked (RowLocked), or the connection was lost (then perhaps after the commit).
    """
    table = ProxyTable(connections[using])

    def send() -> int:
        with brief(using):
            limit_silence(connections[using])
            _insert(plan, table, tell)
            _change(plan, table, tell)
            for batch in _batches(plan.returning):
                _rows(using).filter(pk__in=batch, status=Status.RETIRED).return_to_service(actor=actor)
            return sum(_retire(batch, using, reason, actor) for batch in _batches(plan.retiring))

    def settle() -> int:
        raise DatabaseUnavailable(
            f"database {using!r}: the connection was lost while the proxies were stored; import them again: if they"
            " had been stored, that changes nothing"
        )

    try:
        return retrying(connections[using], send, settle=settle)
    except IntegrityError as error:
        raise ImportRefused(
            Sentence(
                _(
                    "not imported, because somebody else has entered some of the same proxies meanwhile; try again"
                )
            )
        ) from error


def _insert(plan: ImportPlan, table: ProxyTable, tell: Tell) -> None:
    done = 0
    for batch in _batches(plan.new):
        table.insert(batch)
        done += len(batch)
        tell("stored", done, len(plan.new))


def _change(plan: ImportPlan, table: ProxyTable, tell: Tell) -> None:
    done = 0
    for with_password in (False, True):
        rows = [change.row for change in plan.updates if change.with_password is with_password]
        columns = sorted(plan.details | ({"password"} if with_password else set()))
        for batch in _batches(rows):
            table.change(batch, columns)
            done += len(batch)
            tell("changed", done, len(plan.updates))


def _retire(pks: Sequence[Any], using: str, reason: str, actor: str) -> int:
    retired: int = _rows(using).filter(pk__in=pks).exclude(status=Status.RETIRED).retire(reason, actor=actor)
    return retired


def _rows(using: str) -> ResourceQuerySet:
    return ResourceQuerySet(model=Proxy, using=using)


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
