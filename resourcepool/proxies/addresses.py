"""Parses the address of a proxy, not with ``urllib.parse.urlsplit``, which shows the password in its errors and
accepts only the first of these forms::

    http://user:password@host:port     user and password percent-decoded
    user:password@host:port            the same, without a scheme
    host:port
    host:port:user:password            everything after the third colon is the password, unquoted

An address that could also be user:password:host:port or host:port@user:password is refused.
"""

import re
from urllib.parse import unquote_to_bytes

from resourcepool.proxies.fields import host, port
from resourcepool.resources.import_file import BadField
from resourcepool.translation import gettext_noop as _

FORMS = "scheme://user:password@host:port, host:port or host:port:user:password"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST_PORT = r"(?P<host>\[[^\]@]*\]|[^:/@\[\]\s]+):(?P<port>[0-9]+)"
_ENDS_IN_HOST_PORT = re.compile(rf".*@{_HOST_PORT}/?", re.DOTALL)
_IS_HOST_PORT = re.compile(rf"{_HOST_PORT}/?")
_WITH_COLONS = re.compile(rf"{_HOST_PORT}:(?P<username>[^:]*):(?P<password>.*)", re.DOTALL)


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
