"""One HTTP request through a proxy: no redirects, no settings from the environment, so much time and so many bytes."""

import logging
import ssl
from contextvars import ContextVar
from typing import Any, NamedTuple

import certifi
import httpcore

from resourcepool.events import sentence_for
from resourcepool.proxies.health_check.deadline import Deadline
from resourcepool.proxies.health_check.fault import Fault
from resourcepool.proxies.health_check.route import Route
from resourcepool.resources.state import Verdict

TOO_LATE = sentence_for("no_answer_in_time")
MAX_BODY_BYTES = 64 * 1024  # of the answer that are read
HEADERS = [("User-Agent", "resourcepool-check"), ("Accept-Encoding", "identity"), ("Connection", "close")]
TIMEOUTS = (httpcore.TimeoutException, TimeoutError)
FAILURES = (*TIMEOUTS, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError, ValueError)

_is_checking = ContextVar("is_checking", default=False)
# httpcore's debug log repeats what a proxy sends, which may be our login.
for _part in ("connection", "http11", "proxy"):
    logging.getLogger(f"httpcore.{_part}").addFilter(lambda _: not _is_checking.get())


class Answer(NamedTuple):
    """The status, and what was read of the body."""

    status: int
    body: bytes


class _Context(ssl.SSLContext):
    """Strips the brackets that httpcore needs in a URL with an IPv6 address."""

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
        Fault: there was no proper answer in time.
    """
    outside = _is_checking.set(True)
    try:
        answer = _get(url, route, deadline, tls)
    except FAILURES as error:
        # Not the error's own words: they carry what the proxy sent.
        is_late = deadline.is_over or isinstance(error, TIMEOUTS)
        raise Fault(Verdict.BAD, TOO_LATE if is_late else _why(error)) from None
    finally:
        _is_checking.reset(outside)
    if deadline.is_over:  # what was cut off looks like a whole answer
        raise Fault(Verdict.BAD, TOO_LATE)
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
