"""One HTTP request through a proxy, limited in time and size; no redirects, no settings from the environment."""

import logging
import ssl
from contextvars import ContextVar
from typing import Any, NamedTuple

import certifi
import httpcore

from resourcepool.events import sentence_for
from resourcepool.proxies.health_check.address_filter import Fault
from resourcepool.proxies.health_check.route import Deadline, Route
from resourcepool.resources.state import Verdict

TIMED_OUT = sentence_for("no_answer_in_time")
MAX_BODY_BYTES = 64 * 1024  # of the answer; the rest is not read
HEADERS = [("User-Agent", "resourcepool-check"), ("Accept-Encoding", "identity"), ("Connection", "close")]
TIMEOUTS = (httpcore.TimeoutException, TimeoutError)
FAILURES = (*TIMEOUTS, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError, ValueError)

_is_checking = ContextVar("is_checking", default=False)
# httpcore's debug log repeats data from the proxy, which may contain our login.
for _part in ("connection", "http11", "proxy"):
    logging.getLogger(f"httpcore.{_part}").addFilter(lambda _: not _is_checking.get())


class Answer(NamedTuple):
    """The status and the body, up to MAX_BODY_BYTES."""

    status: int
    body: bytes


class _Context(ssl.SSLContext):
    """Removes the brackets of IPv6 addresses, which httpcore needs in URLs."""

    def wrap_socket(self, sock: Any, *_: Any, server_hostname: Any = None, **__: Any) -> ssl.SSLSocket:
        return super().wrap_socket(sock, server_hostname=server_hostname.strip("[]"))

    def wrap_bio(self, incoming: Any, outgoing: Any, *_: Any, server_hostname: Any = None, **__: Any) -> Any:
        return super().wrap_bio(incoming, outgoing, server_hostname=server_hostname.strip("[]"))


def tls_context(ca: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates in the file ``ca``; "": the usual public ones."""
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca or certifi.where())
    return context


def get(url: str, route: Route, deadline: Deadline, tls: ssl.SSLContext) -> Answer:
    """Get ``url`` through the proxy at the end of ``route``.

    Raises:
        Fault: no proper answer in time.
    """
    token = _is_checking.set(True)
    try:
        answer = _get(url, route, deadline, tls)
    except FAILURES as error:
        # Not the text of the error, which may contain data from the proxy.
        is_timeout = deadline.is_exceeded or isinstance(error, TIMEOUTS)
        raise Fault(Verdict.BAD, TIMED_OUT if is_timeout else _why(error)) from None
    finally:
        _is_checking.reset(token)
    if deadline.is_exceeded:  # a shut-down connection looks like the end of the answer
        raise Fault(Verdict.BAD, TIMED_OUT)
    return answer


def _get(url: str, route: Route, deadline: Deadline, tls: ssl.SSLContext) -> Answer:
    limits = {"timeout": dict.fromkeys(("connect", "read", "write"), deadline.left)}
    page, body = httpcore.URL(url), b""
    if b":" in page.host:
        page.host = b"[%b]" % page.host
    with route.pool(tls) as pool, pool.stream("GET", page, headers=HEADERS, extensions=limits) as answer:
        for part in answer.iter_stream():
            body += part
            if len(body) >= MAX_BODY_BYTES:
                break
    return Answer(answer.status, body[:MAX_BODY_BYTES])


def _why(error: Exception) -> str:
    if isinstance(error, httpcore.ProxyError):  # such as "502 Bad Gateway"
        status = str(error)[:3]
        return (
            sentence_for("login_refused_407")
            if status == "407"
            else sentence_for("not_tunnelled", count=status)
        )
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return sentence_for("tls_failed")
        cause = cause.__cause__ or cause.__context__
    return sentence_for("no_proper_answer", error=type(error).__name__)
