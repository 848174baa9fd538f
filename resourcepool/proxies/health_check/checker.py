"""The health check of proxies: gets a page through each."""

import ssl
from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.utils.encoding import iri_to_uri, punycode
from django.views.decorators.debug import sensitive_variables

from resourcepool.clock import monotonic
from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption, CheckerBroken, Hidden, PackageMissing, SecretUnreadable
from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.proxies.health_check.address_filter import AddressFilter, Fault, NotPublic
from resourcepool.resources.state import Verdict

INSTALL = "pip install httpcore certifi"  # the extra "checks"
TOO_MANY_REQUESTS = 429


class ProxyChecker(Checker):
    """Gets a page through the proxy: ok if it answers with the right status and text in time.

    Options: ``url``; ``status``, one or a list of allowed ones (default: 200 to 299); ``text``, required within the
    first 64 KB of the answer; ``allow``, networks and hosts, with or without a port, that may be connected to although
    they are not public; ``ca``, a file with the certificates to trust.
    """

    @sensitive_variables()
    def __init__(
        self,
        *,
        url: str,
        status: int | Collection[int] = range(200, 300),
        text: str = "",
        allow: Sequence[str] = (),
        ca: str = "",
        **general: Any,
    ) -> None:
        super().__init__(**general)
        if find_spec("httpcore") is None:
            why = f"httpcore is not installed: {INSTALL}"
            raise PackageMissing("checker", Hidden(), because=why)
        self._url, self._host, self._port = _target(url)
        self._status, self._text, self._ca = _statuses(status), _text(text), _file(ca)
        self._filter = AddressFilter(allow)
        try:
            self._filter.check(self._host, self._host, self._port)
        except Fault as fault:
            raise BadOption("url", _without_secrets(url), because=fault.why) from None
        except ValueError:
            return  # a name: resolved by prepare()

    def prepare(self) -> None:
        """Refuse a target in this host's network, unless it is allowed. Proxies may resolve its name differently."""
        try:
            self._filter.resolve(self._host, self._port)
        except NotPublic as fault:
            raise CheckerBroken(sentence_for("target", why=fault.why)) from None
        except Fault:
            return  # this host may not resolve names that the proxies resolve

    @sensitive_variables()  # the URL may contain a key, the proxy has a password
    def check(self, resource: Any) -> Finding:
        began_at = monotonic()
        try:
            self._request(resource)
        except Fault as fault:
            return Finding(fault.verdict, monotonic() - began_at, fault.why)
        except SecretUnreadable:
            return Finding(Verdict.UNKNOWN, why=sentence_for("password_unreadable"))
        return Finding(Verdict.OK, monotonic() - began_at)

    def _request(self, proxy: Any) -> None:
        from resourcepool.proxies.health_check.request import Deadline, Route, get

        with Deadline(self.timeout) as deadline:
            answer = get(self._url, Route(proxy, self._filter, deadline), deadline, self._tls)
        if answer.status == 407:
            raise Fault(Verdict.BAD, sentence_for("login_refused_407"))
        if answer.status not in self._status:
            is_target_error = answer.status == TOO_MANY_REQUESTS or answer.status >= 500
            verdict = Verdict.UNKNOWN if is_target_error else Verdict.BAD
            raise Fault(verdict, sentence_for("wrong_status", count=answer.status))
        if self._text.encode() not in answer.body:
            raise Fault(Verdict.BAD, sentence_for("wrong_text"))

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        from resourcepool.proxies.health_check.request import tls_context

        return tls_context(self._ca)


def _target(url: object) -> tuple[str, str, int]:
    """Return the URL in ASCII, its host and its port; raises BadOption."""
    try:
        parts = urlsplit(str(url))
        port = parts.port or (443 if parts.scheme == "https" else 80)
        place = punycode(parts.netloc)
    except ValueError:
        parts, port, place = urlsplit(""), 0, ""
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        allowed = "an address that begins with http:// or https://, without a login"
        raise BadOption("url", _without_secrets(url), allowed)
    return iri_to_uri(parts._replace(netloc=place).geturl()), parts.hostname, port


def _without_secrets(url: object) -> str:
    """Return the scheme of ``url``: the rest may contain a login or a key."""
    scheme, _, rest = str(url).partition("://")
    if rest and scheme.isalnum():
        return f"{scheme}://..."
    return f"{type(url).__name__} of {len(str(url))} characters"


def _statuses(status: object) -> Collection[int]:
    chosen = [status] if isinstance(status, int) else status
    if not isinstance(chosen, Collection) or not chosen or not all(code in range(100, 600) for code in chosen):
        raise BadOption("status", status, "a status such as 200, or a list of them")
    return chosen


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise BadOption("text", text, "a text")
    return text


def _file(path: object) -> str:
    if path and not Path(str(path)).is_file():
        raise BadOption("ca", path, "the path of a certificate file")
    return str(path or "")
