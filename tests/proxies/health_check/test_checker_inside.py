"""Unknown verdicts, refused addresses and refused settings."""

import socket
import threading
from typing import Any

import pytest

from resourcepool.exceptions import BadOption, CheckerBroken, PackageMissing
from resourcepool.health_checks.checker import Finding
from resourcepool.models import Proxy
from resourcepool.proxies.health_check import checker as proxies
from resourcepool.proxies.health_check.checker import ProxyChecker
from resourcepool.resources.state import Verdict
from tests.proxies.health_check import servers
from tests.proxies.health_check.check_helpers import LOCAL, answers, find, finding_of, inside_only, proxy
from tests.proxies.health_check.servers import serving

pytestmark = pytest.mark.filterwarnings("error")


class TestUnknown:
    @pytest.mark.parametrize("code", [429, 500, 502, 503])
    def test_the_target_is_in_trouble(self, code: int) -> None:
        assert finding_of(servers.status(code)) == (Verdict.UNKNOWN, f"the answer had status {code}")

    @pytest.mark.parametrize("scheme", Proxy.Scheme.values)
    def test_the_proxy_is_inside_and_nothing_is_sent_there(
        self, scheme: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connected: list[Any] = []
        with serving(servers.page) as (port, seen):
            monkeypatch.setattr(socket.socket, "connect", lambda _sock, address: connected.append(address))
            found = find(port, scheme=scheme, allow=[])
        assert (found.verdict, connected) == (Verdict.UNKNOWN, [])
        assert "127.0.0.1 is not a public address" in found.why
        assert seen.heads == []

    def test_a_name_that_means_inside_is_no_way_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", answers("127.0.0.1"))
        with serving(servers.page) as (port, seen):
            found = find(port, host="public.example", allow=[])
        assert "public.example (127.0.0.1) is not a public address" in found.why
        assert seen.heads == []

    def test_nor_is_a_second_answer_of_the_name_server(
        self, target: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked, as_it_is = threading.Event(), socket.getaddrinfo

        def rebind(host: str, *more: Any, **named: Any) -> Any:
            if host != "public.example":
                return as_it_is(host, *more, **named)
            first = not asked.is_set()
            asked.set()
            return answers("127.0.0.1" if first else "127.0.0.2")()

        monkeypatch.setattr(socket, "getaddrinfo", rebind)
        with serving(servers.http_proxy(target)) as (port, _):  # listens on 127.0.0.1 alone
            assert find(port, host="public.example").verdict is Verdict.OK

    def test_socks5_is_not_sent_inside(self) -> None:
        with serving(servers.socks_proxy(1)) as (port, seen):
            found = find(port, scheme="socks5", url="http://localhost/", allow=["127.0.0.1"], host="127.0.0.1")
            assert found.verdict is Verdict.BAD  # allowed; there is nothing on that port
            inside = ProxyChecker(url="http://localhost/", timeout=5, allow=["proxy.lan"])
            inside._filter.resolve = inside_only(port)  # type: ignore[method-assign]
            found = inside.check(proxy(port, scheme="socks5", host="proxy.lan"))
        assert (found.verdict, "is not a public address" in found.why) == (Verdict.UNKNOWN, True)
        assert len(seen.hosts) == 1

    def test_the_password_cannot_be_read(self, settings: Any) -> None:
        one = proxy(1, username="joe")
        one.__dict__["password"] = Proxy._meta.get_field("password").from_db_value("sealed:nonsense")
        found = ProxyChecker(url="http://target.test/", timeout=5, allow=LOCAL).check(one)
        assert found == Finding(Verdict.UNKNOWN, why="its password cannot be decrypted")


class TestOptions:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"url": "ftp://target.test/"},
            {"url": "target.test"},
            {"url": None},
            {"url": "http://joe:secret@target.test/"},
            {"url": "http://target.test:99999/"},
            {"url": "http://[::1/"},
            {"url": "http://169.254.169.254/latest"},
            {"url": "http://[::ffff:127.0.0.1]/"},
            {"status": []},
            {"status": ["200"]},
            {"status": 99},
            {"text": b"bytes"},
            {"allow": "127.0.0.1"},
            {"ca": "/nowhere/at/all.pem"},
        ],
    )
    def test_a_wrong_one_is_named(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadOption) as refused:
            ProxyChecker(**{"url": "http://target.test/", "timeout": 5, **wrong})
        assert refused.value.name == next(iter(wrong))

    def test_a_target_inside_is_refused_before_the_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        checker = ProxyChecker(url="http://target.test/", timeout=5)
        monkeypatch.setattr(socket, "getaddrinfo", answers("10.0.0.1"))
        with pytest.raises(CheckerBroken, match=r"target.test \(10.0.0.1\) is not a public address"):
            checker.prepare()

    def test_a_host_that_knows_no_names_may_have_proxies_that_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "")

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        ProxyChecker(url="http://target.test/", timeout=5).prepare()

    def test_what_is_not_installed_is_named_with_the_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proxies, "find_spec", lambda name: None if name == "httpcore" else object())
        with pytest.raises(PackageMissing, match="httpcore is not installed: pip install httpcore certifi"):
            ProxyChecker(url="http://target.test/", timeout=5)
