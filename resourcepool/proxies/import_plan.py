"""Compares what a file says with what the database has. Writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from resourcepool.encryption.sealed import Purpose, Sealed, seal
from resourcepool.exceptions import SecretUnreadable
from resourcepool.proxies.models import Proxy
from resourcepool.proxies.reading import Reading, Tell
from resourcepool.proxies.row import IDENTITY, Identity, Row
from resourcepool.resources.state import Status

CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class ProxyUpdate:
    """A proxy that gets the values of its row; its password too, if that is another one."""

    row: Row
    with_password: bool


@dataclass
class ImportPlan:
    """What is to be done.

    Attributes:
        details: the columns that a change writes, apart from the password.
        new: proxies to insert.
        changes: proxies to update.
        returning: primary keys of retired proxies that go back into service.
        retiring: primary keys of those that are not in the file.
        changed: how many are in ``changes`` or ``returning``.
        unchanged: how many are in the file and stay as they are.
        differing: how many of the unchanged have other values in the file.
        uncompared: how many of the unchanged have a password in the file that was not compared with the stored one.
        staying_retired: how many that are in the file are retired and stay so.
    """

    details: frozenset[str]
    new: list[Row] = field(default_factory=list)
    updates: list[ProxyUpdate] = field(default_factory=list)
    returning: list[Any] = field(default_factory=list)
    retiring: list[Any] = field(default_factory=list)
    changed: int = 0
    unchanged: int = 0
    differing: int = 0
    uncompared: int = 0
    staying_retired: int = 0


def make_plan(
    reading: Reading, using: str, *, update: bool, sync: bool, tell: Tell, compares_passwords: bool = True
) -> ImportPlan:
    """Return what an import of ``reading`` into the database ``using`` has to do.

    Args:
        update: proxies that exist get the values of the columns the file has.
        sync: proxies that are not in the file are retired, retired ones that are in it return to service. While
            the file has bad lines nothing is retired: what they meant may be among what is missing.
        compares_passwords: False for those who may not know the stored ones, and would learn whether theirs are the
            same. Then every password in the file counts as another one.
    """
    plan = ImportPlan(reading.details - {"password"})
    compare = partial(_compare, plan, update=update, sync=sync, compares_passwords=compares_passwords)
    missing = dict(reading.rows)
    details = sorted(reading.details)
    for number, (pk, status, identity, stored) in enumerate(_existing(details, using), 1):
        row = missing.pop(identity, None)
        if row is not None:
            compare(pk, status, row, dict(zip(details, stored, strict=True)))
        elif sync and not reading.bad and status != Status.RETIRED:
            plan.retiring.append(pk)
        if number % CHUNK == 0:
            tell("compared", number, None)
    _seal(plan, list(missing.values()), tell)
    return plan


def _existing(details: list[str], using: str) -> Iterator[tuple[Any, str, Identity, tuple[Any, ...]]]:
    """Yield (primary key, status, identity, details) of every proxy, a chunk at a time."""
    rows = Proxy.objects.using(using).order_by("pk").values_list("pk", "status", *IDENTITY, *details)
    chunk = list(rows[:CHUNK])
    while chunk:
        for pk, status, scheme, host, port, username, *stored in chunk:
            yield pk, status, (scheme, host, port, username), tuple(stored)
        chunk = list(rows.filter(pk__gt=chunk[-1][0])[:CHUNK])


def _compare(
    plan: ImportPlan,
    pk: Any,
    status: str,
    row: Row,
    stored: dict[str, Any],
    *,
    update: bool,
    sync: bool,
    compares_passwords: bool,
) -> None:
    old = stored.pop("password", "")
    other_password = bool(row.password) and not (compares_passwords and _same_password(row, old))
    is_uncompared = other_password and not compares_passwords and not update
    differs = (other_password and not is_uncompared) or any(
        getattr(row, name) != value for name, value in stored.items()
    )
    returns = sync and status == Status.RETIRED
    if differs and update:
        plan.updates.append(ProxyUpdate(row, other_password))
    if returns:
        plan.returning.append(pk)
    if returns or (differs and update):
        plan.changed += 1
    else:
        plan.unchanged += 1
    plan.differing += differs and not update
    plan.uncompared += is_uncompared
    plan.staying_retired += status == Status.RETIRED and not sync


def _same_password(row: Row, stored: str | Sealed) -> bool:
    """Tell whether nothing has to be written."""
    try:
        return row.password == (stored.open(*_purposes(row)) if isinstance(stored, Sealed) else stored)
    except SecretUnreadable:
        return False  # and so an import brings passwords back whose key was lost


def _seal(plan: ImportPlan, new: list[Row], tell: Tell) -> None:
    """Encrypt all passwords that will be written: before the transaction, which keeps others waiting."""
    total = len(new) + len(plan.updates)
    for number, row in enumerate(new, 1):
        plan.new.append(_sealed(row))
        if number % CHUNK == 0:
            tell("encrypted", number, total)
    for index, change in enumerate(plan.updates):
        if change.with_password:
            plan.updates[index] = replace(change, row=_sealed(change.row))


def _sealed(row: Row) -> Row:
    is_text = isinstance(row.password, str) and row.password
    return replace(row, password=seal(str(row.password), _purposes(row)[0])) if is_text else row


def _purposes(row: Row) -> list[Purpose]:
    """Return what the password of this proxy may be sealed for; the first is what it is sealed for now."""
    purposes: list[Purpose] = Proxy._meta.get_field("password").purposes_of(*row.identity)
    return purposes
