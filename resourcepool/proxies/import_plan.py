"""What an import changes: found by comparing the file with the database, then written in one transaction."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict
from django.utils.translation import gettext_noop as _

from resourcepool import dialect
from resourcepool.database.open_transaction import set_idle_timeout
from resourcepool.database.retry import retrying
from resourcepool.database.short_statements import fail_if_locked
from resourcepool.encryption.secret import EncryptedSecret, Purpose, encrypt
from resourcepool.exceptions import DatabaseUnavailable, SecretUnreadable
from resourcepool.proxies.fields import IDENTITY, import_refused
from resourcepool.proxies.import_file import (
    COMMITTING,
    BadLine,
    Identity,
    ParsedFile,
    ProgressCallback,
    Row,
    no_progress,
)
from resourcepool.proxies.models import Proxy
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status

CHUNK = 5_000  # rows read at once
# Rows written at once: SQLite may allow only 999 values in a list; MariaDB takes statements of 16 MB.
BATCH = 500

Item = TypeVar("Item")


@dataclass(kw_only=True)
class ImportResult:
    """The result of an import, or of a dry run.

    Attributes:
        new, changed, unchanged: the proxies in the file; together all of its good lines.
        returned: how many of the changed were retired and are back in service.
        retired: how many that are not in the file were taken out.
        differing: how many of the unchanged have other values in the file.
        uncompared: how many of the unchanged have a password in the file that was not compared with the stored one.
        staying_retired: how many that are in the file are retired and stay so.
        repeated: how many lines of the file are exact copies of one before.
        bad, bad_count: the first of the lines that were skipped, and how many there are.
    """

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    returned: int = 0
    retired: int = 0
    differing: int = 0
    uncompared: int = 0
    staying_retired: int = 0
    repeated: int = 0
    bad: Sequence[BadLine] = ()
    bad_count: int = 0

    @property
    def total(self) -> int:
        """How many proxies the file has."""
        return self.new + self.changed + self.unchanged


@dataclass
class ImportPlan:
    """The changes to make, and their ``counts``.

    Attributes:
        details: the columns that an update writes, apart from the password.
        new: proxies to insert.
        updates: proxies to update: {whether the password is written, too: these}.
        returning: primary keys of retired proxies that go back into service.
        retiring: primary keys of those that are not in the file.
    """

    details: frozenset[str]
    counts: ImportResult
    new: list[Row] = field(default_factory=list)
    updates: dict[bool, list[Row]] = field(default_factory=lambda: {False: [], True: []})
    returning: list[Any] = field(default_factory=list)
    retiring: list[Any] = field(default_factory=list)


def make_plan(
    reading: ParsedFile,
    using: str,
    *,
    update: bool,
    sync: bool,
    progress: ProgressCallback,
    compare_passwords: bool = True,
) -> ImportPlan:
    """Return what an import of ``reading`` into the database ``using`` has to do.

    Args:
        update: proxies that exist get the values of the columns the file has.
        sync: proxies that are not in the file are retired, retired ones that are in it return to service. While
            the file has bad lines nothing is retired: what they meant may be among what is missing.
        compares_passwords: False for those who may not know the stored ones, and would learn whether theirs are the
            same. Then every password in the file counts as another one.
    """
    counts = ImportResult(bad=reading.bad, bad_count=reading.bad_count, repeated=reading.repeated)
    plan = ImportPlan(reading.details - {"password"}, counts)
    missing = dict(reading.rows)
    details = sorted(reading.details)
    for number, (pk, status, identity, values) in enumerate(_existing(details, using), 1):
        row, is_retired = missing.pop(identity, None), status == Status.RETIRED
        if row is not None:
            stored = dict(zip(details, values, strict=True))
            password = stored.pop("password", "")
            writes_password = bool(row.password) and not (compare_passwords and _same_password(row, password))
            is_uncompared = writes_password and not (compare_passwords or update)
            differs = (writes_password and not is_uncompared) or any(
                getattr(row, name) != value for name, value in stored.items()
            )
            if differs and update:
                plan.updates[writes_password].append(row)
            if is_retired and sync:
                plan.returning.append(pk)
            counts.changed += (differs and update) or (is_retired and sync)
            counts.differing += differs and not update
            counts.uncompared += is_uncompared
            counts.staying_retired += is_retired and not sync
        elif sync and not reading.bad and not is_retired:
            plan.retiring.append(pk)
        if number % CHUNK == 0:
            progress("compared", number, None)
    counts.new, counts.returned, counts.retired = len(missing), len(plan.returning), len(plan.retiring)
    counts.unchanged = len(reading.rows) - counts.new - counts.changed
    _seal(plan, missing.values(), progress)
    return plan


def _existing(details: list[str], using: str) -> Iterator[tuple[Any, str, Identity, Sequence[Any]]]:
    """Yield (primary key, status, identity, details) of every proxy, a chunk at a time."""
    rows = Proxy.objects.using(using).order_by("pk").values_list("pk", "status", *IDENTITY, *details)
    chunk = list(rows[:CHUNK])
    while chunk:
        for pk, status, scheme, host, port, username, *stored in chunk:
            yield pk, status, (scheme, host, port, username), stored
        chunk = list(rows.filter(pk__gt=chunk[-1][0])[:CHUNK])


def _same_password(row: Row, stored: str | EncryptedSecret) -> bool:
    try:
        return row.password == (stored.open(*_purposes(row)) if isinstance(stored, EncryptedSecret) else stored)
    except SecretUnreadable:
        return False  # and so an import brings passwords back whose key was lost


def _seal(plan: ImportPlan, new: Collection[Row], progress: ProgressCallback) -> None:
    """Encrypt all passwords that will be written: before the transaction, which keeps others waiting."""
    total = len(new) + len(plan.updates[True])
    for number, row in enumerate(new, 1):
        plan.new.append(_sealed(row))
        if number % CHUNK == 0:
            progress("encrypted", number, total)
    plan.updates[True] = [_sealed(row) for row in plan.updates[True]]


def _sealed(row: Row) -> Row:
    return replace(row, password=encrypt(str(row.password), _purposes(row)[0])) if row.password else row


def _purposes(row: Row) -> list[Purpose]:
    """Return the purposes that this proxy's password may be sealed for, the current one first."""
    purposes: list[Purpose] = Proxy._meta.get_field("password").purposes_of(*row.identity)
    return purposes


def apply_plan(plan: ImportPlan, using: str, reason: str, progress: ProgressCallback, actor: str = "") -> int:
    """Do what ``plan`` says in one transaction; returns how many proxies ``actor`` has retired, for ``reason``.

    No lease is touched: what is held and retired, or changed, stays with its holder.

    Raises:
        ImportRefused: somebody else has entered one of the same proxies meanwhile.
        DatabaseUnavailable: rows stayed locked (RowLocked), or the connection was lost (then perhaps after the commit).
    """
    connection = connections[using]
    rows = ResourceQuerySet(model=Proxy, using=using)

    def send() -> int:
        with fail_if_locked(using):
            set_idle_timeout(connection)
            for batch in _batches(plan.new, "stored", progress):
                write(connection, batch)
            for writes_password, updates in plan.updates.items():
                columns = sorted(plan.details | ({"password"} if writes_password else set()))
                for batch in _batches(updates, "changed", progress):
                    write(connection, batch, columns)
            for pks in _batches(plan.returning):
                rows.filter(pk__in=pks, status=Status.RETIRED).return_to_service(actor=actor)
            in_service = rows.exclude(status=Status.RETIRED)
            retired = sum(
                in_service.filter(pk__in=pks).retire(reason, actor=actor) for pks in _batches(plan.retiring)
            )
            progress(COMMITTING, 0, None)
            return retired

    def settle() -> int:
        raise DatabaseUnavailable(
            f"database {using!r}: the connection was lost while the proxies were stored; import them again: if they"
            " had been stored, that changes nothing"
        )

    try:
        return retrying(connection, send, settle=settle)
    except IntegrityError as error:
        why = _("not imported, because somebody else has entered some of the same proxies meanwhile; try again")
        raise import_refused(why) from error


def _batches(
    items: Sequence[Item], what: str = "", progress: ProgressCallback = no_progress
) -> Iterator[Sequence[Item]]:
    """Yield ``items`` in batches; ``progress`` is called after each."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
        progress(what, min(start + BATCH, len(items)), len(items))


def write(connection: BaseDatabaseWrapper, rows: Sequence[Row], columns: Collection[str] = ()) -> None:
    """Insert these proxies, free and in service like saved ones; where there is one already, write its ``columns``.

    By SQL of our own, because Django's ``bulk_create`` spends three times as long on preparing 18 values a row, most of
    which are the same in every row.

    Raises:
        IntegrityError: there is one already, and no columns are named.
    """
    read = {one.name for one in fields(Row)}
    every = [one for one in Proxy._meta.concrete_fields if not one.primary_key and one.name != "fence"]
    every.sort(key=lambda one: one.name in read)
    fixed = [one.get_db_prep_save(one.get_default(), connection) for one in every if one.name not in read]
    given = every[len(fixed) :]
    update = OnConflict.UPDATE if columns else None
    suffix = connection.ops.on_conflict_suffix_sql(every, update, columns, IDENTITY)
    quote = connection.ops.quote_name
    names = [quote(str(one.column)) for one in every]
    sql = (
        f"INSERT INTO {quote(Proxy._meta.db_table)} ({', '.join(names)}, {quote('fence')})"  # noqa: S608 (quoted)
        # MySQL's driver makes one statement of many rows only where all of this are parameters.
        f" VALUES ({', '.join(['%s'] * len(names))}, %s) {suffix}"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {dialect.of(connection).micros_now}", ())
        (fence,) = cursor.fetchone()
        values = [[one.get_db_prep_save(getattr(row, one.name), connection) for one in given] for row in rows]
        cursor.executemany(sql, [[*fixed, *own, fence] for own in values])
