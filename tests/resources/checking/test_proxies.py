"""Proxies are checked by a request through them: real ones, good and bad, on this machine."""

import base64
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcepool.exceptions import BadOption, CheckerBroken
from resourcepool.models import Proxy
from resourcepool.resources.checking import proxies, request, route
from resourcepool.resources.checking.checker import Finding
from resourcepool.resources.checking.proxies import ProxyChecker
from resourcepool.resources.state import Verdict
from tests.eventually import eventually
from tests.resources.checking import certificates, servers
from tests.resources.checking.servers import PAGE, Behaviour, serving

CANARY = "c4n4ry:pass@word"
LOCAL = ["127.0.0.0/8"]
SOON = 0.4  # seconds: for what must time out

pytestmark = pytest.mark.filterwarnings("error")


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


@pytest.fixture
def target() -> Iterator[int]:
    with serving(servers.page) as (port, _):
        yield port


class TestGood:
    def test_http(self, target: int) -> None:
        with serving(servers.http_proxy(target)) as (port, seen):
            found = find(port, text=PAGE.decode())
        assert (found.verdict, found.why) == (Verdict.OK, "")
        assert found.seconds is not None
        assert 0 < found.seconds < 20
        assert seen.hosts == ["http://target.test/"]  # the name is the proxy's to look up

    def test_http_with_a_login(self, target: int) -> None:
        login = base64.b64encode(f"jürgen:{CANARY}".encode())
        with serving(servers.http_proxy(target, login)) as (port, _):
            assert find(port, username="jürgen", password=CANARY).verdict is Verdict.OK

    def test_socks5h_leaves_the_name_to_the_proxy(self, target: int) -> None:
        with serving(servers.socks_proxy(target)) as (port, seen):
            assert find(port, scheme="socks5h", text=PAGE.decode()).verdict is Verdict.OK
        assert seen.hosts == ["target.test"]

    def test_socks5_looks_the_name_up_here(self, target: int) -> None:
        with serving(servers.socks_proxy(target)) as (port, seen):
            assert find(port, scheme="socks5", url=f"http://localhost:{target}/").verdict is Verdict.OK
        assert seen.hosts == ["127.0.0.1"]

    def test_socks_with_a_login(self, target: int) -> None:
        with serving(servers.socks_proxy(target, b"joe", CANARY.encode())) as (port, _):
            found = find(port, scheme="socks5h", username="joe", password=CANARY)
        assert found.verdict is Verdict.OK

    def test_what_the_environment_says_is_of_no_interest(
        self, target: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "*")
        with serving(servers.http_proxy(target)) as (port, seen):
            assert find(port).verdict is Verdict.OK
        assert len(seen.heads) == 1

    def test_other_statuses_if_they_are_expected(self) -> None:
        assert finding_of(servers.status(404), status=404) == (Verdict.OK, "")
        assert finding_of(servers.status(503), status=[200, 503]) == (Verdict.OK, "")

    def test_a_big_page_of_which_only_the_beginning_is_read(self) -> None:
        assert finding_of(servers.endless, text=PAGE.decode()) == (Verdict.OK, "")


class TestBad:
    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_refuses_the_connection(self, scheme: str) -> None:
        found = find(servers.closed_port(), scheme=scheme)
        assert (found.verdict, found.why) == (Verdict.BAD, "refused the connection")

    @pytest.mark.parametrize("behave", [servers.silent, servers.trickling])
    @pytest.mark.parametrize("url", ["http://target.test/", "https://target.test/"])
    def test_takes_too_long(self, behave: Behaviour, url: str) -> None:
        verdict, why = finding_of(behave, url=url, timeout=SOON)
        assert (verdict, why) in [(Verdict.BAD, request.TOO_LATE), (Verdict.BAD, route.TOO_LATE)]

    @pytest.mark.parametrize("scheme", ["https", "socks5h"])
    def test_takes_too_long_to_say_hello(self, scheme: str) -> None:
        verdict, why = finding_of(servers.silent, scheme=scheme, timeout=SOON)
        assert (verdict, why) in [
            (Verdict.BAD, request.TOO_LATE),
            (Verdict.BAD, route.TOO_LATE),
        ]

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (b"\x00\x01garbage\r\n\r\n", "no proper answer"),
            (b"", "no proper answer"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort", "no proper answer"),
            (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n", "no proper answer"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", "no proper answer"),
            (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "refused our login (407)"),
            (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "the answer was 403"),
            (b"HTTP/1.1 204 No\r\n\r\n", "the answer does not have the text"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin", "the answer does not have the text"),
        ],
    )
    def test_answers_wrongly(self, answer: bytes, why: str) -> None:
        verdict, said = finding_of(servers.answering(answer), text="hello")
        assert (verdict, said[: len(why)]) == (Verdict.BAD, why)

    def test_redirects_and_is_not_followed(self) -> None:
        with serving(servers.status(302, "Location: http://127.0.0.1:1/\r\n")) as (port, seen):
            found = find(port)
        assert (found.verdict, found.why) == (Verdict.BAD, "the answer was 302")
        assert len(seen.heads) == 1

    @pytest.mark.parametrize(
        ("code", "why"), [(407, "refused our login (407)"), (502, "would not connect us (502)")]
    )
    def test_refuses_to_connect_us(self, code: int, why: str) -> None:
        assert finding_of(servers.status(code), url="https://target.test/") == (Verdict.BAD, why)

    def test_shows_no_certificate(self) -> None:
        with serving(servers.plain) as (target, _):
            found = finding_of(servers.http_proxy(target), url="https://target.test/")
        assert found == (Verdict.BAD, "TLS failed: a wrong certificate, or none")

    @pytest.mark.parametrize("code", [1, 2, 3, 4, 5])
    def test_socks_reaches_nothing(self, code: int) -> None:
        found = finding_of(servers.socks_refusing(code), scheme="socks5h")
        assert found == (Verdict.BAD, "could not reach the target, or would not")

    def test_socks_refuses_the_login(self, target: int) -> None:
        behave = servers.socks_proxy(target, b"joe", b"other")
        found = finding_of(behave, scheme="socks5h", username="joe", password=CANARY)
        assert found == (Verdict.BAD, "refused our login")

    def test_does_not_speak_socks(self) -> None:
        verdict, _ = finding_of(servers.answering(b"HTTP/1.1 400 What\r\n\r\n"), scheme="socks5h", timeout=SOON)
        assert verdict is Verdict.BAD


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

    def test_a_page_without_tls_through_a_proxy_with_it(self, target: int, certificate: Any) -> None:
        behave = proxy_of("https", target, certificate[1])
        assert finding_of(behave, scheme="https", text=PAGE.decode(), ca=certificate[0]) == (Verdict.OK, "")

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
    def test_a_certificate_that_nobody_vouches_for_is_bad(
        self, scheme: str, safe_target: int, certificate: Any
    ) -> None:
        behave = proxy_of(scheme, safe_target, certificate[1])
        found = finding_of(behave, scheme=scheme, url="https://target.test/")
        assert found == (Verdict.BAD, "TLS failed: a wrong certificate, or none")

    def test_a_proxy_that_nobody_vouches_for_is_not_told_the_password(self, certificate: Any) -> None:
        with serving(servers.over_tls(servers.status(200), certificate[1])) as (port, seen):
            found = find(port, scheme="https", username="joe", password=CANARY)
        assert found.why == "TLS failed: a wrong certificate, or none"
        assert seen.heads == []

    def test_so_is_one_for_another_name(self, safe_target: int, certificate: Any) -> None:
        wanted = {"url": "https://other.test/", "ca": certificate[0]}
        found = finding_of(servers.http_proxy(safe_target), **wanted)
        assert found == (Verdict.BAD, "TLS failed: a wrong certificate, or none")


class TestUnknown:
    @pytest.mark.parametrize("code", [429, 500, 502, 503])
    def test_the_target_is_in_trouble(self, code: int) -> None:
        assert finding_of(servers.status(code)) == (Verdict.UNKNOWN, f"the answer was {code}")

    def test_the_proxy_is_inside_and_nothing_is_sent_there(self) -> None:
        with serving(servers.page) as (port, seen):
            found = find(port, allow=[])
        assert found.verdict is Verdict.UNKNOWN
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
        asked = threading.Event()

        def rebind(*_: Any, **__: Any) -> Any:
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
            inside._guard.resolve = inside_only(port)  # type: ignore[method-assign]
            found = inside.check(proxy(port, scheme="socks5", host="proxy.lan"))
        assert (found.verdict, "is not a public address" in found.why) == (Verdict.UNKNOWN, True)
        assert len(seen.hosts) == 1

    def test_the_password_cannot_be_read(self, settings: Any) -> None:
        one = proxy(1, username="joe")
        one.__dict__["password"] = Proxy._meta.get_field("password").to_python("sealed:nonsense")
        found = ProxyChecker(url="http://target.test/", timeout=5, allow=LOCAL).check(one)
        assert found == Finding(Verdict.UNKNOWN, why="its password cannot be decrypted")


class TestEndings:
    def test_nothing_is_left_behind(self) -> None:
        for behave in (servers.silent, servers.trickling, servers.endless):
            finding_of(behave, timeout=SOON, text="no such text")
        eventually(lambda: not [one for one in threading.enumerate() if isinstance(one, threading.Timer)])

    def test_it_takes_no_longer_than_it_may(self) -> None:
        began_at = time.monotonic()
        finding_of(servers.trickling, timeout=SOON)
        assert time.monotonic() - began_at < 15  # a machine under load; without the lifeline: for ever


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

    @pytest.mark.parametrize("missing", ["requests", "socks"])
    def test_what_is_not_installed_is_named_with_the_command(
        self, missing: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(proxies, "find_spec", lambda name: None if name == missing else object())
        with pytest.raises(BadOption, match=r"pip install 'django-resourcepool\[checks\]'"):
            ProxyChecker(url="http://target.test/", timeout=5)


def test_no_more_is_read_than_64_kib() -> None:
    assert request.MOST_BYTES == 65_536


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
    """Look up the proxy as it is, and everything else with a guard that allows nothing."""
    from resourcepool.resources.checking.guard import Guard

    def resolve(host: str, _port: int) -> Any:
        if host == "proxy.lan":
            return [(socket.AF_INET, "127.0.0.1")]
        return Guard().resolve(host, _port)

    return resolve
