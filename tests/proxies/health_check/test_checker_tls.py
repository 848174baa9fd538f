"""Proxies and pages over TLS; passwords go only to their proxy."""

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcepool.resources.state import Verdict
from tests.proxies.health_check import certificates, servers
from tests.proxies.health_check.check_helpers import (
    CANARY,
    find,
    finding_of,
    proxy_of,
)
from tests.proxies.health_check.servers import PAGE, serving

pytestmark = pytest.mark.filterwarnings("error")


class TestOverTls:
    """The target, or the proxy, or both."""

    @pytest.fixture
    def certificate(self, tmp_path: Path) -> tuple[str, ssl.SSLContext]:
        return certificates.make(tmp_path, "target.test")

    @pytest.fixture
    def safe_target(self, certificate: tuple[str, ssl.SSLContext]) -> Iterator[int]:
        with serving(servers.over_tls(servers.page, certificate[1])) as (port, _):
            yield port

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_the_page_comes_through(self, scheme: str, safe_target: int, certificate: Any) -> None:
        behave = proxy_of(scheme, safe_target, certificate[1])
        wanted = {"url": "https://target.test/", "text": PAGE.decode(), "ca": certificate[0]}
        assert finding_of(behave, scheme=scheme, **wanted) == (Verdict.OK, "")

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_a_page_at_an_ipv6_address(self, scheme: str, safe_target: int, certificate: Any) -> None:
        behave = proxy_of(scheme, safe_target, certificate[1])
        with serving(behave) as (port, seen):
            page = f"https://[{certificates.PAGE_IPV6}]/"
            found = find(port, scheme=scheme, url=page, ca=certificate[0])
        assert (found.verdict, found.why) == (Verdict.OK, "")
        as_sent = certificates.PAGE_IPV6 if scheme == "socks5h" else f"[{certificates.PAGE_IPV6}]:443"
        assert seen.hosts == [as_sent]

    def test_a_page_without_tls_through_a_proxy_with_it(self, target: int, certificate: Any) -> None:
        behave = proxy_of("https", target, certificate[1])
        assert finding_of(behave, scheme="https", text=PAGE.decode(), ca=certificate[0]) == (Verdict.OK, "")

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_a_certificate_that_nobody_vouches_for_is_bad(
        self, scheme: str, safe_target: int, certificate: Any
    ) -> None:
        behave = proxy_of(scheme, safe_target, certificate[1])
        found = finding_of(behave, scheme=scheme, url="https://target.test/")
        assert found == (Verdict.BAD, "TLS failed: wrong or missing certificate")

    def test_a_proxy_that_nobody_vouches_for_is_not_told_the_password(self, certificate: Any) -> None:
        with serving(servers.over_tls(servers.status(200), certificate[1])) as (port, seen):
            found = find(port, scheme="https", username="joe", password=CANARY)
        assert found.why == "TLS failed: wrong or missing certificate"
        assert seen.heads == []

    def test_so_is_one_for_another_name(self, safe_target: int, certificate: Any) -> None:
        wanted = {"url": "https://other.test/", "ca": certificate[0]}
        found = finding_of(servers.http_proxy(safe_target), **wanted)
        assert found == (Verdict.BAD, "TLS failed: wrong or missing certificate")


class TestSecrets:
    @pytest.mark.parametrize("url", ["http://target.test/", "https://target.test/"])
    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_are_in_no_finding_and_no_log(
        self, url: str, scheme: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(0)
        behaviours = [servers.answering(CANARY.encode()), servers.status(407), servers.status(502)]
        for behave in [*behaviours, servers.socks_refusing(4)]:
            found = finding_of(behave, url=url, scheme=scheme, username="joe", password=CANARY, timeout=2)
            assert CANARY not in str(found)
            assert "c4n4ry" not in str(found)
        assert "c4n4ry" not in caplog.text
        assert base64.b64encode(f"joe:{CANARY}".encode()).decode() not in caplog.text
