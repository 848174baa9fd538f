"""Runs the proxy checker on a local proxy."""

import socket
import ssl
from typing import Any

from resourcepool.health_checks.checker import Finding
from resourcepool.models import Proxy
from resourcepool.proxies.health_check.checker import ProxyChecker
from resourcepool.resources.state import Verdict
from tests.proxies.health_check import servers
from tests.proxies.health_check.servers import Behaviour, serving

CANARY = "c4n4ry:pass@word"
LOCAL = ["127.0.0.0/8"]
SOON = 0.4  # seconds, for timeouts


def proxy(port: int, **fields: Any) -> Proxy:
    return Proxy(**{"host": "127.0.0.1", "port": port, **fields})


def find(port: int, *, url: str = "http://target.test/", timeout: float = 20, **more: Any) -> Finding:
    fields = {name: more.pop(name) for name in ("scheme", "username", "password", "host") if name in more}
    checker = ProxyChecker(**{"url": url, "timeout": timeout, "allow": LOCAL, **more})
    return checker.check(proxy(port, **fields))


def finding_of(behave: Behaviour, **more: Any) -> tuple[Verdict, str]:
    with serving(behave) as (port, _):
        found = find(port, **more)
        return found.verdict, found.why


def proxy_of(scheme: str, target: int, context: ssl.SSLContext) -> Behaviour:
    """Return a good proxy of this kind."""
    if scheme == "socks5h":
        return servers.socks_proxy(target)
    behave = servers.http_proxy(target)
    return servers.over_tls(behave, context) if scheme == "https" else behave


def answers(*addresses: str) -> Any:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    return lambda *_, **__: found


def inside_only(port: int) -> Any:
    """Resolve the proxy as it is, and all other hosts with a filter that allows nothing."""
    from resourcepool.proxies.health_check.address_filter import AddressFilter

    def resolve(host: str, _port: int) -> Any:
        if host == "proxy.lan":
            return ["127.0.0.1"]
        return AddressFilter().resolve(host, _port)

    return resolve
