"""Is a proxy usable? One request through it to a page that you name."""

import ssl
from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.utils.encoding import iri_to_uri, punycode
from django.views.decorators.debug import sensitive_variables

from resourcepool.database.clock import monotonic
from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption, CheckerBroken, SecretUnreadable
from resourcepool.health_checks.checker import Checker, Finding
from resourcepool.proxies.health_check.address_filter import AddressFilter
from resourcepool.proxies.health_check.deadline import Deadline
from resourcepool.proxies.health_check.fault import Fault, NotPublic
from resourcepool.resources.state import Verdict

PIP = "run: pip install 'django-resourcepool[checks]'"
TARGETS_FAULT = 429  # and whatever is 500 or more


class ProxyChecker(Checker):
    """Gets a page through the proxy: ok if it answers with the right status and text in time.

    Options: ``url``; ``status``, one or a list, of which the answer must have one (default: 200 to 299); ``text``,
    which must be within its first 64 KB; ``allow``, networks and hosts, each perhaps with a port, that may be spoken to
    though not public; ``ca``, a file with the certificates to trust.
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
            raise BadOption("checker", type(self).__name__, because=f"it needs httpcore; {PIP}")
        self._url, self._host, self._port = _target(url)
        self._status, self._text, self._ca = _statuses(status), _text(text), _file(ca)
        self._guard = AddressFilter(allow)
        try:
            self._guard.check(self._host, self._host, self._port)
        except Fault as fault:
            raise BadOption("url", _without_secrets(url), because=fault.why) from None
        except ValueError:
            return  # a name: looked up by prepare()

    def prepare(self) -> None:
        """Refuse a target inside the host's network, unless it is allowed. Proxies may resolve its name differently."""
        try:
            self._guard.resolve(self._host, self._port)
        except NotPublic as fault:
            raise CheckerBroken(sentence_for("target", why=fault.why)) from None
        except Fault:
            return  # a host that knows no names may have proxies that do

    @sensitive_variables()  # the page's address may have a key, the proxy has a password
    def check(self, resource: Any) -> Finding:
        began_at = monotonic()
        try:
            self._ask(resource)
        except Fault as fault:
            return Finding(fault.verdict, monotonic() - began_at, fault.why)
        except SecretUnreadable:
            return Finding(Verdict.UNKNOWN, why=sentence_for("password_unreadable"))
        return Finding(Verdict.OK, monotonic() - began_at)

    def _ask(self, proxy: Any) -> None:
        from resourcepool.proxies.health_check.request import get
        from resourcepool.proxies.health_check.route import Route

        with Deadline(self.timeout) as deadline:
            answer = get(self._url, Route(proxy, self._guard, deadline), deadline, self._tls)
        if answer.status == 407:
            raise Fault(Verdict.BAD, sentence_for("login_refused_407"))
        if answer.status not in self._status:
            is_targets_fault = answer.status == TARGETS_FAULT or answer.status >= 500
            verdict = Verdict.UNKNOWN if is_targets_fault else Verdict.BAD
            raise Fault(verdict, sentence_for("wrong_status", count=answer.status))
        if self._text.encode() not in answer.body:
            raise Fault(Verdict.BAD, sentence_for("wrong_text"))

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        from resourcepool.proxies.health_check.request import tls_context

        return tls_context(self._ca)


def _target(url: object) -> tuple[str, str, int]:
    """Return the page's address in ASCII, its host and its port; raises BadOption."""
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
    """Return as much of ``url`` as may be shown: a login or a key may stand in what follows."""
    scheme, _, rest = str(url).partition("://")
    if rest and scheme.isalnum():
        return f"{scheme}://..."
    return f"{type(url).__name__} of {len(str(url))} characters"


def _statuses(status: object) -> Collection[int]:
    chosen = [status] if isinstance(status, int) else status
    if not isinstance(chosen, Collection) or not chosen or not all(one in range(100, 600) for one in chosen):
        raise BadOption("status", status, "a status such as 200, or a list of them")
    return chosen


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise BadOption("text", text, "some text that the answer has in it")
    return text


def _file(path: object) -> str:
    if path and not Path(str(path)).is_file():
        raise BadOption("ca", path, "the path of a file with certificates")
    return str(path or "")
