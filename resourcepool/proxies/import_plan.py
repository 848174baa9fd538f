"""The changes of an import: computed by comparing the file with the database, written in one transaction."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool.db import dialect
from resourcepool.db.retry import retrying
from resourcepool.db.transactions import fail_if_locked
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
from resourcepool.resources.import_rows import CHANGED, NEW, SET, UNCHANGED, Change, RowChange
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status
from resourcepool.translation import gettext, gettext_noop as _

MAX_ROWS_SHOWN = 500
CHUNK = 5_000  # rows per read
# Rows per write: SQLite may allow only 999 values in a list; MariaDB limits statements to 16 MB.
BATCH = 500

Item = TypeVar("Item")


@dataclass(kw_only=True)
class ImportResult:
    """The result of an import, or of a dry run.

    Attributes:
        new, changed, unchanged: numbers of proxies in the file; together all good lines.
        returned: changed proxies that were retired and returned to service.
        retired: proxies that are not in the file and were retired.
        differing: unchanged proxies that have other values in the file.
        uncompared: unchanged proxies whose password in the file was not compared with the stored one.
        staying_retired: proxies in the file that stay retired.
        repeated: lines that are exact copies of an earlier one.
        bad, bad_count: the first skipped lines, and their number.
        rows: what happens with each proxy, the first ``MAX_ROWS_SHOWN``; without passwords.
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
    rows: list[RowChange] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of proxies in the file."""
        return self.new + self.changed + self.unchanged


@dataclass
class ImportPlan:
    """The changes to make.

    Attributes:
        counts: the numbers of changes.
        details: the columns to update, besides the password.
        new: proxies to insert.
        updates: {whether to write the password, too: proxies to update}.
        returning: primary keys of retired proxies to return to service.
        retiring: primary keys of proxies to retire, because they are not in the file.
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
    """Return the changes for an import of ``reading`` into the database ``using``.

    Args:
        update: update existing proxies from the columns in the file.
        sync: retire proxies that are not in the file, and return retired ones in it to service. Retires nothing if the
            file has bad lines, which may be the missing proxies.
        compare_passwords: False for users who may not see stored passwords, and could otherwise test guesses. Then
            every password in the file counts as different.
    """
    counts = ImportResult(bad=reading.bad, bad_count=reading.bad_count, repeated=reading.repeated)
    plan = ImportPlan(reading.details - {"password"}, counts)
    missing = dict(reading.rows)
    wanted: dict[tuple[str, int], list[tuple[Any, str]]] = {
        (row.host, row.port): [] for row in missing.values()
    }
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
            if len(counts.rows) < MAX_ROWS_SHOWN:
                changes = _changes(row, stored, writes_password=writes_password and not is_uncompared)
                counts.rows.append(_shown(row, changes, update=update, returns=is_retired and sync))
            if is_retired and sync:
                plan.returning.append(pk)
            counts.changed += (differs and update) or (is_retired and sync)
            counts.differing += differs and not update
            counts.uncompared += is_uncompared
            counts.staying_retired += is_retired and not sync
        elif sync and not reading.bad and not is_retired:
            plan.retiring.append(pk)
        if row is None and (similar := wanted.get(identity[1:3])) is not None:
            similar.append((pk, f"{identity[0]}://{identity[3] + '@' if identity[3] else ''}"))
        if number % CHUNK == 0:
            progress("compared", number, None)
    counts.rows += [
        RowChange(row.line, NEW, _name(row), note=_looks_like(wanted[row.host, row.port]))
        for row in missing.values()
    ][: MAX_ROWS_SHOWN - len(counts.rows)]
    counts.rows.sort()
    counts.new, counts.returned, counts.retired = len(missing), len(plan.returning), len(plan.retiring)
    counts.unchanged = len(reading.rows) - counts.new - counts.changed
    _seal(plan, missing.values(), progress)
    return plan


def _name(row: Row) -> str:
    login = f"{row.username}@" if row.username else ""
    return f"{row.scheme}://{login}{f'[{row.host}]' if ':' in row.host else row.host}:{row.port}"


def _looks_like(similar: Sequence[tuple[Any, str]]) -> str:
    """Return that existing proxies have the same host and port, but another scheme or user name; "" if none has."""
    if not similar:
        return ""
    pk, login = similar[0]
    return gettext("looks like proxy %(pk)s (%(login)s..), with another scheme or user name") % {
        "pk": pk,
        "login": login,
    }


def _changes(row: Row, stored: Mapping[str, Any], *, writes_password: bool) -> list[Change]:
    """Return the columns in which a row of the file differs from the stored one."""
    changes = [
        Change(name, str(value), str(getattr(row, name)))
        for name, value in stored.items()
        if getattr(row, name) != value
    ]
    return [*changes, Change("password", "", SET)] if writes_password else changes


def _shown(row: Row, changes: list[Change], *, update: bool, returns: bool) -> RowChange:
    note = gettext("returns to service") if returns else ""
    if (changes and update) or returns:
        return RowChange(row.line, CHANGED, _name(row), tuple(changes) if update else (), note)
    if changes:
        note = gettext("differs in %s; left unchanged") % ", ".join(change.field for change in changes)
    return RowChange(row.line, UNCHANGED, _name(row), note=note)


def _existing(details: list[str], using: str) -> Iterator[tuple[Any, str, Identity, Sequence[Any]]]:
    """Yield (primary key, status, identity, details) of every proxy; reads in chunks."""
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
        return False  # so an import restores passwords whose key was lost


def _seal(plan: ImportPlan, new: Collection[Row], progress: ProgressCallback) -> None:
    """Encrypt all passwords to write, before the transaction, which blocks other processes."""
    total = len(new) + len(plan.updates[True])
    for number, row in enumerate(new, 1):
        plan.new.append(_sealed(row))
        if number % CHUNK == 0:
            progress("encrypted", number, total)
    plan.updates[True] = [_sealed(row) for row in plan.updates[True]]


def _sealed(row: Row) -> Row:
    return replace(row, password=encrypt(str(row.password), _purposes(row)[0])) if row.password else row


def _purposes(row: Row) -> list[Purpose]:
    """Return the purposes for which the password may be encrypted, the current one first."""
    purposes: list[Purpose] = Proxy._meta.get_field("password").purposes_of(*row.identity)
    return purposes


def apply_plan(plan: ImportPlan, using: str, reason: str, progress: ProgressCallback, actor: str = "") -> int:
    """Apply ``plan`` in one transaction; return the number of proxies that ``actor`` retired, for ``reason``.

    Leases are not touched: holders keep proxies that are retired or changed.

    Raises:
        ImportRefused: another process added one of the same proxies meanwhile.
        DatabaseUnavailable: rows stayed locked (RowLocked), or the connection was lost (then perhaps after the commit).
    """
    connection = connections[using]
    rows = ResourceQuerySet(model=Proxy, using=using)

    def send() -> int:
        with fail_if_locked(using):
            for batch in _batches(plan.new, "stored", progress):
                upsert(connection, batch)
            for writes_password, updates in plan.updates.items():
                columns = sorted(plan.details | ({"password"} if writes_password else set()))
                for batch in _batches(updates, "changed", progress):
                    upsert(connection, batch, columns)
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
            f"database {using!r}: the connection was lost while the proxies were being stored; run the import again:"
            " proxies that are already stored stay unchanged"
        )

    try:
        return retrying(connection, send, settle=settle)
    except IntegrityError as error:
        why = _("not imported: some of the same proxies were added by someone else meanwhile; try again")
        raise import_refused(why) from error


def _batches(
    items: Sequence[Item], step: str = "", progress: ProgressCallback = no_progress
) -> Iterator[Sequence[Item]]:
    """Yield ``items`` in batches; ``progress`` is called after each."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
        progress(step, min(start + BATCH, len(items)), len(items))


def upsert(connection: BaseDatabaseWrapper, rows: Sequence[Row], columns: Collection[str] = ()) -> None:
    """Insert these proxies, free and in service; update ``columns`` of existing ones.

    Not with Django's ``bulk_create``, which takes three times as long to prepare 18 values per row, although most are
    the same in every row.

    Raises:
        IntegrityError: a proxy exists already, and ``columns`` is empty.
    """
    row_names = {row_field.name for row_field in fields(Row)}
    columns_to_insert = [
        column for column in Proxy._meta.concrete_fields if not column.primary_key and column.name != "fence"
    ]
    columns_to_insert.sort(key=lambda column: column.name in row_names)
    defaults = [
        column.get_db_prep_save(column.get_default(), connection)
        for column in columns_to_insert
        if column.name not in row_names
    ]
    row_columns = columns_to_insert[len(defaults) :]
    update = OnConflict.UPDATE if columns else None
    suffix = connection.ops.on_conflict_suffix_sql(columns_to_insert, update, columns, IDENTITY)
    quote = connection.ops.quote_name
    names = [quote(str(column.column)) for column in columns_to_insert]
    sql = (
        f"INSERT INTO {quote(Proxy._meta.db_table)} ({', '.join(names)}, {quote('fence')})"  # noqa: S608 (quoted)
        # MySQL's driver batches rows into one statement only if all values are parameters.
        f" VALUES ({', '.join(['%s'] * len(names))}, %s) {suffix}"
    )
    with connection.cursor() as cursor:
        # A new row's fence starts at the clock (``FenceField``), so a recreated row never repeats one.
        cursor.execute(f"SELECT {dialect.of(connection).micros_now}", ())
        (fence,) = cursor.fetchone()
        values = [
            [column.get_db_prep_save(getattr(row, column.name), connection) for column in row_columns]
            for row in rows
        ]
        cursor.executemany(sql, [[*defaults, *row_values, fence] for row_values in values])
