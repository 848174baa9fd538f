"""Writes a plan to the database: all of it, or nothing."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from django.db import IntegrityError, connections
from django.utils.translation import gettext_noop as _

from resourcepool.database.open_transaction import limit_silence
from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import brief
from resourcepool.events import Sentence
from resourcepool.exceptions import DatabaseUnavailable, ImportRefused
from resourcepool.proxies.import_plan import ImportPlan
from resourcepool.proxies.models import Proxy
from resourcepool.proxies.reading import Tell, silent
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
    rows = ResourceQuerySet(model=Proxy, using=using)

    def send() -> int:
        with brief(using):
            limit_silence(connections[using])
            for batch in _batches(plan.new, "stored", tell):
                table.write(batch)
            for writes_password, updates in plan.updates.items():
                columns = sorted(plan.details | ({"password"} if writes_password else set()))
                for batch in _batches(updates, "changed", tell):
                    table.write(batch, columns)
            for pks in _batches(plan.returning):
                rows.filter(pk__in=pks, status=Status.RETIRED).return_to_service(actor=actor)
            in_service = rows.exclude(status=Status.RETIRED)
            return sum(
                in_service.filter(pk__in=pks).retire(reason, actor=actor) for pks in _batches(plan.retiring)
            )

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


def _batches(items: Sequence[Item], what: str = "", tell: Tell = silent) -> Iterator[Sequence[Item]]:
    """Yield ``items`` some at a time; after each ``tell`` hears how many are done."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
        tell(what, min(start + BATCH, len(items)), len(items))
