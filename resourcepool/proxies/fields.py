"""Parses and validates the address and the fields of an imported proxy.

An address is not parsed with ``urllib.parse.urlsplit``, which shows the password in its errors and
accepts only the first of these forms::

    http://user:password@host:port     user and password percent-decoded
    user:password@host:port            the same, without a scheme
    host:port
    host:port:user:password            everything after the third colon is the password, unquoted

An address that could also be user:password:host:port or host:port@user:password is refused.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from sys import intern  # stores the values that repeat in every line once
from typing import Any
from urllib.parse import unquote_to_bytes

from resourcepool.resources.import_file import BadField
from resourcepool.resources.selectors import parse_tags
from resourcepool.translation import gettext_noop as _

IDENTITY = ("scheme", "host", "port", "username")
DETAILS = ("password", "country", "tags", "weight", "notes")

SCHEMES = ("http", "https", "socks5", "socks5h")
MAX_HOST, MAX_PORT, MAX_WEIGHT = 253, 65_535, 1_000_000
MAX_USERNAME, MAX_PASSWORD, MAX_TAGS, MAX_NOTES = 200, 1_000, 498, 2_000

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_LIKE_IPV4, _LIKE_IPV6 = re.compile(r"[0-9.]+"), re.compile(r"[0-9a-f.]*:[0-9a-f.]*:[0-9a-f:.]*")
_DIGITS = re.compile(r"[0-9]{1,9}")
_TWO_LETTERS = re.compile(r"[A-Za-z]{2}")
_NO_CONTROLS = _("must be at most %(count)s characters, without control characters")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_IN_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # allows tabs and new lines

FORMS = "scheme://user:password@host:port, host:port or host:port:user:password"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST_PORT = r"(?P<host>\[[^\]@]*\]|[^:/@\[\]\s]+):(?P<port>[0-9]+)"
_ENDS_IN_HOST_PORT = re.compile(rf".*@{_HOST_PORT}/?", re.DOTALL)
_IS_HOST_PORT = re.compile(rf"{_HOST_PORT}/?")
_WITH_COLONS = re.compile(rf"{_HOST_PORT}:(?P<username>[^:]*):(?P<password>.*)", re.DOTALL)


def scheme(text: str) -> str:
    """Return the scheme in lower case; default: http."""
    name = text.lower() or "http"
    if name not in SCHEMES:
        raise BadField("scheme", _("not one of %(names)s"), names=", ".join(SCHEMES))
    return intern(name)


def host(text: str) -> str:
    """Return a host name or an IP address as it is stored: lower case, IPv6 without brackets."""
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not name:
        raise BadField("host", _("missing"))
    if not name.isascii():
        raise BadField("host", _("not ASCII; write an international name in its xn-- form"))
    name = name.lower().removesuffix(".")
    if _LIKE_IPV6.fullmatch(name):  # not "%eth0", a network interface of one machine
        return _ip(ipaddress.IPv6Address, name)
    if _LIKE_IPV4.fullmatch(name):
        return _ip(ipaddress.IPv4Address, name)
    labels = name.split(".")
    if len(name) > MAX_HOST or labels[-1].isdigit() or not all(map(_LABEL.fullmatch, labels)):
        why = _("not a host name or an IP address (at most %(count)s characters)")
        raise BadField("host", why, count=MAX_HOST)
    return name


def port(text: str) -> int:
    if not text:
        raise BadField("port", _("missing"))
    return _whole("port", text, MAX_PORT)


def username(text: str) -> str:
    """Return the user name; may be empty."""
    # Some collations of MySQL treat "me " and "me" as equal.
    if len(text) > MAX_USERNAME or not text.isprintable() or text != text.strip():
        why = _("must be at most %(count)s printable characters, without leading or trailing spaces")
        raise BadField("username", why, count=MAX_USERNAME)
    return text


def password(text: str) -> str:
    """Return the password; may be empty."""
    if len(text) > MAX_PASSWORD or _CONTROL.search(text):
        raise BadField("password", _NO_CONTROLS, count=MAX_PASSWORD)
    return text


def country(text: str) -> str:
    """Return the country in upper case; may be empty."""
    if text and not _TWO_LETTERS.fullmatch(text):
        raise BadField("country", _("not two letters such as US"))
    return intern(text.upper())


def tags(text: str) -> str:
    """Return the tags as a ``TagsField`` reads them: "eu fast"."""
    try:
        joined = " ".join(parse_tags(text))
    except ValueError:
        raise BadField("tags", _("must be words of 1 to 50 of the characters a-z 0-9 . _ : / = -")) from None
    if len(joined) > MAX_TAGS:
        raise BadField("tags", _("longer than %(count)s characters in total"), count=MAX_TAGS)
    return intern(joined)


def weight(text: str) -> int:
    """Return the weight; default: 1."""
    return _whole("weight", text, MAX_WEIGHT) if text else 1


def notes(text: str) -> str:
    """Return the notes; may be empty, may have several lines."""
    if len(text) > MAX_NOTES or _CONTROL_IN_TEXT.search(text):
        raise BadField("notes", _NO_CONTROLS, count=MAX_NOTES)
    return text


FIELD_PARSERS: Mapping[str, Callable[[str], Any]] = {
    parser.__name__: parser for parser in (scheme, host, port, username, password, country, tags, weight, notes)
}


def _whole(field: str, text: str, most: int) -> int:
    number = int(text) if _DIGITS.fullmatch(text) else 0
    if not 1 <= number <= most:
        raise BadField(field, _("not a whole number from 1 to %(count)s"), count=most)
    return number


def _ip(kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address], text: str) -> str:
    try:
        return kind(text).compressed
    except ValueError:
        name = kind.__name__.removesuffix("Address")
        raise BadField("host", _("not an %(kind)s address"), kind=name) from None


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
