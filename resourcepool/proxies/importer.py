"""Imports proxies: also one address per line, or in a column "url"; 100,000 at once."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from resourcepool.db.rows import batches, insert_many
from resourcepool.encryption.secret import encrypt
from resourcepool.proxies.fields import DETAILS, FIELD_PARSERS, IDENTITY, address
from resourcepool.proxies.models import Proxy
from resourcepool.resources.import_file import CellReader, NumberedLine, ParsedFile, Row, import_refused
from resourcepool.resources.importer import Importer, is_significant
from resourcepool.translation import gettext, gettext_lazy, gettext_noop as _

COLUMNS = (*IDENTITY, *DETAILS)
ADDRESS_COLUMNS = frozenset({*IDENTITY, "password"})  # contained in the column "url"
MAX_ROWS = 500  # per statement

_DEFAULTS = dict.fromkeys(FIELD_PARSERS, "")


class ProxyImporter(Importer):
    """Imports proxies. A proxy is identified by scheme, host, port and user name."""

    help = gettext_lazy(
        "UTF-8: CSV with a header (%(columns)s), or one address per line. At most 1 MB; for larger files use"
        " manage.py resourcepool_import."
    )
    found_by = IDENTITY.index("host")
    never_begin_with_hash = ("url", "scheme", "host", "port", "country")

    def __init__(self, model: Any = Proxy) -> None:
        super().__init__(model)
        self.parsers = FIELD_PARSERS
        self.columns = ("url", *COLUMNS)
        self._similar: dict[
            tuple[str, int], list[Proxy]
        ] = {}  # existing proxies with the host and port of a new one

    def key(self, names: Collection[str]) -> Sequence[str]:
        return IDENTITY

    def parse(self, lines: Iterator[NumberedLine]) -> tuple[Collection[str], Iterator[tuple[int, CellReader]]]:
        names, rows = super().parse(lines)
        if "url" in names:
            names = {*names, *ADDRESS_COLUMNS}
        return names, ((number, partial(_complete, cells)) for number, cells in rows)

    def check_header(self, names: list[str]) -> None:
        super().check_header(names)
        doubled = sorted(ADDRESS_COLUMNS.intersection(names)) if "url" in names else []
        if doubled:
            raise import_refused(
                _("the header has both url and %(names)s, which url already contains"), names=", ".join(doubled)
            )
        missing = [] if "url" in names else [name for name in ("host", "port") if name not in names]
        if missing:
            raise import_refused(_("the header lacks %(names)s (or url)"), names=" and ".join(missing))

    def parse_without_header(
        self, lines: Iterator[NumberedLine]
    ) -> tuple[Collection[str], Iterator[tuple[int, CellReader]]]:
        addresses = ((number, text.strip()) for number, text in lines if is_significant(text))
        return ADDRESS_COLUMNS, ((number, partial(address, text)) for number, text in addresses)

    def existing(self, parsed: ParsedFile, *, whole: bool) -> Iterator[Any]:
        self._similar = {(row.values["host"], row.values["port"]): [] for row in parsed.rows.values()}
        for proxy in super().existing(parsed, whole=whole):
            similar = self._similar.get((proxy.host, proxy.port))
            if similar is not None and tuple(getattr(proxy, name) for name in IDENTITY) not in parsed.rows:
                similar.append(proxy)
            yield proxy

    def note(self, row: Row) -> str:
        """Return that an existing proxy has the same host and port, but another scheme or user name."""
        if not (similar := self._similar[row.values["host"], row.values["port"]]):
            return ""
        proxy = similar[0]
        login = f"{proxy.scheme}://{proxy.username and proxy.username + '@'}"
        return gettext("looks like proxy %(pk)s (%(login)s..), with another scheme or user name") % {
            "pk": proxy.pk,
            "login": login,
        }

    def prepare(self, row: Row, stored: Any) -> Any:
        """Return the values, with the password encrypted: before the transaction, which blocks other processes."""
        values = row.values
        if password := values["password"]:
            purpose = Proxy._meta.get_field("password").purposes_of(*(values[name] for name in IDENTITY))[0]
            return {**values, "password": encrypt(password, purpose)}
        return values

    def insert(self, connection: BaseDatabaseWrapper, rows: Sequence[Any], columns: Sequence[str] = ()) -> None:
        fields: list[Any] = [Proxy._meta.get_field(name) for name in COLUMNS]
        values = [[field.get_db_prep_save(row[field.name], connection) for field in fields] for row in rows]
        on_conflict = OnConflict.UPDATE if columns else None
        for batch in batches(values, lambda row: sum(len(str(value)) for value in row), MAX_ROWS):
            insert_many(connection, Proxy(), COLUMNS, batch, on_conflict, columns, IDENTITY)

    def update(self, connection: BaseDatabaseWrapper, rows: Sequence[Any], columns: Sequence[str]) -> None:
        self.insert(connection, rows, columns)


def _complete(cells: CellReader) -> dict[str, str]:
    """Return the cells of a proxy; those that the file does not have are empty."""
    values = cells()
    if "url" in values:
        values |= address(values.pop("url"))
    return _DEFAULTS | values
