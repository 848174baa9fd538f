"""Parses and validates the fields of an imported proxy."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from sys import intern  # stores the values that repeat in every line once
from typing import Any

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
