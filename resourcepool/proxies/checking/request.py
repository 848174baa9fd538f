"""One HTTP request through a proxy, on a leash: no redirects, no surroundings, so much time and so many bytes."""

import http.client
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from resourcepool.events import say
from resourcepool.proxies.checking.deadline import Lifeline
from resourcepool.proxies.checking.fault import Fault
from resourcepool.proxies.checking.route import Route
from resourcepool.resources.state import Verdict

MOST_BYTES = 64 * 1024  # of the answer that are read
HEADERS = {"User-Agent": "resourcepool-check", "Accept-Encoding": "identity", "Connection": "close"}
TOO_LATE = say("no_answer_in_time")
TUNNEL_REFUSED = re.compile(r"Tunnel connection failed: (\d{3})")
FAILURES = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
TLS_FAILURES = (ssl.SSLError, urllib3.exceptions.SSLError, requests.exceptions.SSLError)


@dataclass(frozen=True, slots=True)
class Answer:
    """The status, and what was read of the body."""

    status: int
    body: bytes


def get(url: str, route: Route, lifeline: Lifeline, ca: str = "") -> Answer:
    """Get ``url`` through the proxy at the end of ``route``.

    Args:
        ca: path of the certificates to trust; "": those that everybody trusts.

    Raises:
        Fault: there was no proper answer in time.
    """
    try:
        answer = _get(url, route, lifeline, ca)
    except FAILURES as error:
        if lifeline.is_cut or isinstance(error, requests.Timeout | TimeoutError):
            raise Fault(Verdict.BAD, TOO_LATE) from None
        raise _fault(error) from None
    if lifeline.is_cut:  # what was cut off in its head looks like a whole answer
        raise Fault(Verdict.BAD, TOO_LATE)
    return answer


def _get(url: str, route: Route, lifeline: Lifeline, ca: str) -> Answer:
    proxies = {} if route.is_socks else {"http": route.url, "https": route.url}
    with requests.Session() as session:
        session.trust_env, session.verify = False, ca or True
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(route))
        with session.get(
            url, proxies=proxies, headers=HEADERS, timeout=lifeline.left, stream=True, allow_redirects=False
        ) as answer:
            return Answer(answer.status_code, _beginning(answer.raw))


def _beginning(stream: Any) -> bytes:
    body = b""
    # Until nothing more comes: only then is noticed that there should have been more.
    while len(body) < MOST_BYTES and (more := stream.read(MOST_BYTES - len(body), decode_content=False)):
        body += more
    return body


def _fault(error: Exception) -> Fault:
    # Not the error's own words: they carry URLs.
    refused = TUNNEL_REFUSED.search(str(error))
    if refused is not None:
        status = int(refused[1])
        why = say("login_refused_407") if status == 407 else say("not_tunnelled", count=status)
        return Fault(Verdict.BAD, why)
    if any(isinstance(cause, TLS_FAILURES) for cause in _causes(error)):
        return Fault(Verdict.BAD, say("tls_failed"))
    return Fault(Verdict.BAD, say("no_proper_answer", error=type(error).__name__))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class _Adapter(HTTPAdapter):
    """Has every connection opened by a route."""

    def __init__(self, route: Route) -> None:
        self._route = route
        super().__init__(max_retries=0)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        pool.ConnectionCls = partial(_Https if pool.scheme == "https" else _Http, self._route)
        return pool

    def cert_verify(self, conn: Any, url: str, *args: Any, **kwargs: Any) -> None:
        # requests goes by the page's URL: to a proxy over TLS it would send our login unverified for a page without.
        verify: Any = super().cert_verify
        verify(conn, "https://" if conn.scheme == "https" else url, *args, **kwargs)

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        return self._route.headers


class _Http(HTTPConnection):
    def __init__(self, route: Route, *args: Any, **kwargs: Any) -> None:
        self._route = route
        super().__init__(*args, **kwargs)

    def _new_conn(self) -> Any:
        return self._route.connect(self.host, int(self.port))


class _Https(HTTPSConnection):
    def __init__(self, route: Route, *args: Any, **kwargs: Any) -> None:
        self._route = route
        super().__init__(*args, **kwargs)

    def _new_conn(self) -> Any:
        return self._route.connect(self.host, int(self.port))

    def _tunnel(self) -> None:
        super()._tunnel()
        self._route.ensure_in_time()  # what was cut off in its head looks like a whole answer, here too
