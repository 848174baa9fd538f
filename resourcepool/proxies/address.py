"""Parses one proxy's address, in the forms that lists of proxies use.

Not ``urllib.parse.urlsplit``: it repeats the password in its errors and takes only the first of these::

    http://user:password@host:port     user and password percent-decoded
    user:password@host:port            the same, without a scheme
    host:port
    host:port:user:password            everything after the third colon is the password, as it stands

What could be user:password:host:port or host:port@user:password as well is refused.
"""

import re
from urllib.parse import unquote_to_bytes

from django.utils.translation import gettext_noop as _

from resourcepool.proxies.fields import BadField, host, port

FORMS = "scheme://user:password@host:port, host:port or host:port:user:password"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PLACE = r"(?P<host>\[[^\]@]*\]|[^:/@\[\]\s]+):(?P<port>[0-9]+)"
_ENDS_IN_A_PLACE = re.compile(rf".*@{_PLACE}/?", re.DOTALL)
_IS_PLACE = re.compile(rf"{_PLACE}/?")
_WITH_COLONS = re.compile(rf"{_PLACE}:(?P<username>[^:]*):(?P<password>.*)", re.DOTALL)


def address(text: str) -> dict[str, str]:
    """Return {column: value} for scheme, host, port, username and password, as far as ``text`` has them.

    Raises:
        BadField: it has none of the forms above, or could be read in two ways.
    """
    if found := _SCHEME.match(text):
        return {"scheme": found[1], **_authority(text[found.end() :])}
    if found := _WITH_COLONS.fullmatch(text):
        if _ENDS_IN_A_PLACE.fullmatch(text):
            why = _("can be read in two ways; write scheme://user:password@host:port, with %%3A for :")
            raise BadField("url", why)
        if _likeness(text[found.start("username") :]) >= max(1, _likeness(text[: found.end("port")])):
            raise _ambiguous()  # user:password:host:port
        return found.groupdict()
    if "@" not in text:
        _refuse_what_is_no_address(text)
    return _authority(text)


def _refuse_what_is_no_address(text: str) -> None:
    if re.search(r"[,;\t]", text):
        why = _("looks like CSV, which begins with a header such as host,port,username,password")
        raise BadField("url", why)
    if text.count(":") > 1 and "]" not in text:
        why = _("not %(forms)s; an IPv6 address is written in brackets: [::1]:8080")
        raise BadField("url", why, forms=FORMS)


def _authority(text: str) -> dict[str, str]:
    authority, *rest = re.split(r"(?=[/?#])", text, maxsplit=1)
    if rest and "@" in rest[0]:
        raise BadField("url", _("a / ? or # in the user name or password is written %%2F %%3F %%23"))
    if rest not in ([], ["/"]):
        raise BadField("url", _("something follows the port"))
    login, _between, place = authority.rpartition("@")
    if _likeness(login) > _likeness(place):
        raise _ambiguous()  # host:port@user:password
    username, _between, password = login.partition(":")
    login_parts = {"username": username, "password": password}
    return _place(place) | {name: _decoded(name, part) for name, part in login_parts.items()}


def _likeness(text: str) -> int:
    """Return how much ``text`` looks like host:port: 3 with an IP address, 2 with a domain, 1 with any name, 0 not."""
    found = _IS_PLACE.fullmatch(text)
    try:
        name, _number = (host(found["host"]), port(found["port"])) if found else ("", 0)
    except BadField:
        return 0
    if not name:
        return 0
    is_ip = ":" in name or name.replace(".", "").isdigit()
    return 3 if is_ip else 2 if "." in name else 1


def _ambiguous() -> BadField:
    why = _(
        "can be read in two ways: which is the host? Use CSV with the header scheme,host,port,username,password"
    )
    return BadField("url", why)


def _place(text: str) -> dict[str, str]:
    if text.startswith("["):
        inside, _between, number = text.rpartition("]")
        if number and not number.startswith(":"):
            raise BadField("port", _("missing; it follows the bracket and a colon: [::1]:8080"))
        return {"host": f"{inside}]", "port": number.removeprefix(":")}
    name, _between, number = text.partition(":")
    if ":" in number:
        raise BadField("host", _("more than one colon; an IPv6 address is written in brackets: [::1]:8080"))
    return {"host": name, "port": number}


def _decoded(field: str, text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        raise BadField(field, _("its percent-encoding is not UTF-8")) from None
