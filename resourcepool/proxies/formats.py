"""The formats of lists of proxies: CSV with a header, or one address per line.

An address is parsed by ``address`` instead of ``urllib.parse.urlsplit``, which shows the password in its errors and
accepts only the first of these forms::

    http://user:password@host:port     user and password percent-decoded
    user:password@host:port            the same, without a scheme
    host:port
    host:port:user:password            everything after the third colon is the password, unquoted

An address that could also be user:password:host:port or host:port@user:password is refused.
"""

import csv
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from urllib.parse import unquote_to_bytes

from resourcepool.proxies.fields import DETAILS, IDENTITY, BadField, host, import_refused, port
from resourcepool.proxies.models import Proxy
from resourcepool.translation import gettext_noop as _

COLUMNS = (*IDENTITY, *DETAILS)
ADDRESS_COLUMNS = frozenset({*IDENTITY, "password"})  # contained in the column "url"
_NEVER_BEGIN_WITH_HASH = ("url", "scheme", "host", "port", "country")

NumberedLine = tuple[int, str]
CellReader = Callable[[], dict[str, str]]  # returns one proxy as {column: text}; raises BadField

FORMS = "scheme://user:password@host:port, host:port or host:port:user:password"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST_PORT = r"(?P<host>\[[^\]@]*\]|[^:/@\[\]\s]+):(?P<port>[0-9]+)"
_ENDS_IN_HOST_PORT = re.compile(rf".*@{_HOST_PORT}/?", re.DOTALL)
_IS_HOST_PORT = re.compile(rf"{_HOST_PORT}/?")
_WITH_COLONS = re.compile(rf"{_HOST_PORT}:(?P<username>[^:]*):(?P<password>.*)", re.DOTALL)


def parse(lines: Iterator[NumberedLine]) -> tuple[frozenset[str], Iterator[tuple[int, CellReader]]]:
    """Return the detail columns of a file (without those that identify a proxy), and its proxies with line numbers.

    Raises:
        ImportRefused: the file is empty, or has a wrong CSV header; or, while the proxies are read: the quotes of a row
            do not match, so the following rows are unreliable.
    """
    first = next((line for line in lines if _significant(line[1])), None)
    if first is None:
        raise import_refused(_("empty: no proxies"))
    for delimiter in ",;\t":
        names = ["".join(name.lower().split()) for name in next(csv.reader([first[1]], delimiter=delimiter))]
        if {"url", *COLUMNS}.intersection(names):
            _check_header(names)
            columns = {*names, *(ADDRESS_COLUMNS if "url" in names else ())}
            return frozenset(columns.intersection(DETAILS)), _read_csv(lines, names, delimiter)
    addresses = ((number, text.strip()) for number, text in chain([first], lines) if _significant(text))
    return frozenset({"password"}), ((number, partial(address, text)) for number, text in addresses)


def _read_csv(
    lines: Iterator[NumberedLine], columns: list[str], delimiter: str
) -> Iterator[tuple[int, CellReader]]:
    """Yield the line number of each row, and a function that returns its cells; raises ImportRefused.

    A row that begins with # is a comment, unless values of the first column may begin with #.
    """
    has_comments = columns[0] in _NEVER_BEGIN_WITH_HASH
    first_line: int | None = None  # of the current row, whose quoted cells may contain line breaks

    def texts() -> Iterator[str]:
        nonlocal first_line
        for number, text in lines:
            first_line = first_line or number
            yield text + "\n"

    try:
        for record in csv.reader(texts(), delimiter=delimiter, skipinitialspace=True, strict=True):
            cells, line, first_line = [cell.strip() for cell in record], first_line or 0, None
            if any(cells) and not (has_comments and cells[0].startswith("#")):
                yield line, partial(_cells, cells, columns, delimiter)
    except csv.Error as error:
        why = _("line %(count)s: the quotes of this CSV row do not match (%(error)s)")
        raise import_refused(why, count=first_line, error=error) from None


def _cells(cells: list[str], columns: list[str], delimiter: str) -> dict[str, str]:
    if len(cells) != len(columns):
        text = _(
            "%(count)s cells, but the header has %(count_columns)s (put cells that contain %(delimiter)s in"
            " quotes)"
        )
        counts = {"count": len(cells), "count_columns": len(columns)}
        raise BadField("columns", text, **counts, delimiter=repr(delimiter))
    values = dict(zip(columns, cells, strict=True))
    if "url" in values:
        values |= address(values.pop("url"))
    return values


def _significant(text: str) -> bool:
    text = text.strip()
    return bool(text) and not text.startswith("#")


def _check_header(names: list[str]) -> None:
    if unknown := sorted({name[:40] for name in names if name not in {"url", *COLUMNS}}):
        known = f"url, {', '.join(COLUMNS)}"
        exported = {field.name for field in Proxy._meta.concrete_fields} | {"state"}
        # Mostly unknown names: the line may be a proxy with a password instead of a header, so they are not shown.
        if 2 * len(unknown) > len(names) and not exported.issuperset(unknown):
            raise import_refused(_("the header has unknown columns; allowed: %(known)s"), known=known)
        why = _("the header has unknown columns: %(names)s; allowed: %(known)s")
        raise import_refused(why, names=", ".join(map(repr, unknown)), known=known)
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise import_refused(_("the header repeats a column: %(names)s"), names=", ".join(repeated))
    doubled = sorted(ADDRESS_COLUMNS.intersection(names)) if "url" in names else []
    if doubled:
        raise import_refused(
            _("the header has both url and %(names)s, which url already contains"), names=", ".join(doubled)
        )
    missing = [] if "url" in names else [name for name in ("host", "port") if name not in names]
    if missing:
        raise import_refused(_("the header lacks %(names)s (or url)"), names=" and ".join(missing))


def address(text: str) -> dict[str, str]:
    """Return {column: value} of scheme, host, port, username and password, as far as ``text`` has them.

    Raises:
        BadField: ``text`` has none of the forms above, or is ambiguous.
    """
    if match := _SCHEME.match(text):
        return {"scheme": match[1], **_authority(text[match.end() :])}
    if match := _WITH_COLONS.fullmatch(text):
        if _ENDS_IN_HOST_PORT.fullmatch(text):
            why = _("ambiguous; write scheme://user:password@host:port, with %%3A for :")
            raise BadField("url", why)
        if _host_port_score(text[match.start("username") :]) >= max(
            1, _host_port_score(text[: match.end("port")])
        ):
            raise _ambiguous()  # user:password:host:port
        return match.groupdict()
    if "@" not in text:
        _refuse_other_formats(text)
    return _authority(text)


def _refuse_other_formats(text: str) -> None:
    if re.search(r"[,;\t]", text):
        why = _("looks like CSV, which needs a header such as host,port,username,password")
        raise BadField("url", why)
    if text.count(":") > 1 and "]" not in text:
        why = _("not %(forms)s; write an IPv6 address in brackets: [::1]:8080")
        raise BadField("url", why, forms=FORMS)


def _authority(text: str) -> dict[str, str]:
    authority, *rest = re.split(r"(?=[/?#])", text, maxsplit=1)
    if rest and "@" in rest[0]:
        raise BadField("url", _("write / ? # in the user name or password as %%2F %%3F %%23"))
    if rest not in ([], ["/"]):
        raise BadField("url", _("unexpected text after the port"))
    login, _between, host_port = authority.rpartition("@")
    if _host_port_score(login) > _host_port_score(host_port):
        raise _ambiguous()  # host:port@user:password
    username, _between, password = login.partition(":")
    login_parts = {"username": username, "password": password}
    return _split_host_port(host_port) | {name: _decoded(name, part) for name, part in login_parts.items()}


def _host_port_score(text: str) -> int:
    """Return how much ``text`` looks like host:port: 3 with an IP address, 2 with a domain, 1 with any name, else 0."""
    match = _IS_HOST_PORT.fullmatch(text)
    try:
        name, _number = (host(match["host"]), port(match["port"])) if match else ("", 0)
    except BadField:
        return 0
    if not name:
        return 0
    is_ip = ":" in name or name.replace(".", "").isdigit()
    return 3 if is_ip else 2 if "." in name else 1


def _ambiguous() -> BadField:
    why = _("ambiguous: which part is the host? Use CSV with the header scheme,host,port,username,password")
    return BadField("url", why)


def _split_host_port(text: str) -> dict[str, str]:
    if text.startswith("["):
        inside, _between, number = text.rpartition("]")
        if number and not number.startswith(":"):
            raise BadField("port", _("missing after the bracket: write [::1]:8080"))
        return {"host": f"{inside}]", "port": number.removeprefix(":")}
    name, _between, number = text.partition(":")
    if ":" in number:
        raise BadField("host", _("more than one colon; write an IPv6 address in brackets: [::1]:8080"))
    return {"host": name, "port": number}


def _decoded(field: str, text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        raise BadField(field, _("its percent-encoding is not UTF-8")) from None
