"""Proxies are checked by a request through them: real ones, good and bad, on this machine."""

import base64
import threading
import time

import pytest

from resourcepool.proxies.health_check import request
from resourcepool.resources.state import Verdict
from tests.eventually import eventually
from tests.proxies.health_check import servers
from tests.proxies.health_check.check_helpers import (
    CANARY,
    SOON,
    find,
    finding_of,
)
from tests.proxies.health_check.servers import PAGE, Behaviour, serving

pytestmark = pytest.mark.filterwarnings("error")


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

    @pytest.mark.parametrize(("scheme", "host"), [("socks5h", "target.test"), ("socks5", "localhost")])
    def test_socks_looks_the_name_up_here_or_leaves_it_to_the_proxy(
        self, target: int, scheme: str, host: str
    ) -> None:
        with serving(servers.socks_proxy(target)) as (port, seen):
            found = find(port, scheme=scheme, url=f"http://{host}:{target}/", text=PAGE.decode())
        assert found.verdict is Verdict.OK
        assert seen.hosts == [host if scheme == "socks5h" else "127.0.0.1"]

    @pytest.mark.parametrize(
        ("name", "password", "is_needed"),
        [("joe", CANARY, True), ("joe", CANARY, False), ("jürgen" * 20, "pass" * 50, True)],
        ids=["needed", "not needed", "long"],
    )
    def test_socks_with_a_login(self, target: int, name: str, password: str, is_needed: bool) -> None:
        login = (name.encode(), password.encode()) if is_needed else ()
        with serving(servers.socks_proxy(target, *login)) as (port, _):
            found = find(port, scheme="socks5h", username=name, password=password)
        assert (found.verdict, found.why) == (Verdict.OK, "")

    def test_socks_with_an_answer_in_pieces(self, target: int) -> None:
        with serving(servers.socks_proxy(target, in_pieces=True)) as (port, _):
            assert find(port, scheme="socks5h").verdict is Verdict.OK

    def test_an_address_in_another_script_and_one_in_brackets(self, target: int) -> None:
        with serving(servers.http_proxy(target)) as (port, seen):
            assert find(port, url="http://bücher.test/für?a=ß#b").verdict is Verdict.OK
            assert find(port, url="http://[2606:4700::6810:1]:81/").verdict is Verdict.OK
        assert seen.hosts == [
            "http://xn--bcher-kva.test/f%C3%BCr?a=%C3%9F",
            "http://[2606:4700::6810:1]:81/",
        ]

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

    @pytest.mark.parametrize(
        ("behave", "more"),
        [
            *((servers.silent, {"url": url}) for url in ("http://target.test/", "https://target.test/")),
            *((servers.trickling, {"url": url}) for url in ("http://target.test/", "https://target.test/")),
            *((servers.silent, {"scheme": scheme}) for scheme in ("https", "socks5h")),
            (servers.trickling_page, {"text": PAGE.decode()}),
        ],
    )
    def test_takes_too_long(self, behave: Behaviour, more: dict[str, str]) -> None:
        found = finding_of(behave, timeout=SOON, **more)
        assert found in [(Verdict.BAD, request.TIMED_OUT), (Verdict.BAD, request.CONNECT_TIMED_OUT)]

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (b"\x00\x01garbage\r\n\r\n", "invalid answer"),
            (b"", "invalid answer"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort", "invalid answer"),
            (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n", "invalid answer"),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "invalid answer"),
            (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "refused our login (407)"),
            (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "the answer had status 403"),
            (b"HTTP/1.1 204 No\r\n\r\n", "the answer lacks the expected text"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin", "the answer lacks the expected text"),
        ],
    )
    def test_answers_wrongly(self, answer: bytes, why: str) -> None:
        verdict, said = finding_of(servers.answering(answer), text="hello")
        assert (verdict, said[: len(why)]) == (Verdict.BAD, why)

    def test_redirects_and_is_not_followed(self) -> None:
        with serving(servers.status(302, "Location: http://127.0.0.1:1/\r\n")) as (port, seen):
            found = find(port)
        assert (found.verdict, found.why) == (Verdict.BAD, "the answer had status 302")
        assert len(seen.heads) == 1

    @pytest.mark.parametrize(
        ("code", "why"), [(407, "refused our login (407)"), (502, "refused CONNECT (502)")]
    )
    def test_refuses_to_connect_us(self, code: int, why: str) -> None:
        assert finding_of(servers.status(code), url="https://target.test/") == (Verdict.BAD, why)

    def test_shows_no_certificate(self) -> None:
        with serving(servers.plain) as (target, _):
            found = finding_of(servers.http_proxy(target), url="https://target.test/")
        assert found == (Verdict.BAD, "TLS failed: wrong or missing certificate")

    @pytest.mark.parametrize("code", [1, 2, 3, 4, 5])
    def test_socks_reaches_nothing(self, code: int) -> None:
        found = finding_of(servers.socks_refusing(code), scheme="socks5h")
        assert found == (Verdict.BAD, "could not reach the target")

    def test_socks_refuses_the_login(self, target: int) -> None:
        behave = servers.socks_proxy(target, b"joe", b"other")
        found = finding_of(behave, scheme="socks5h", username="joe", password=CANARY)
        assert found == (Verdict.BAD, "refused our login")

    def test_does_not_speak_socks(self) -> None:
        verdict, _ = finding_of(servers.answering(b"HTTP/1.1 400 What\r\n\r\n"), scheme="socks5h", timeout=SOON)
        assert verdict is Verdict.BAD


class TestEndings:
    def test_nothing_is_left_behind(self) -> None:
        for behave in (servers.silent, servers.trickling, servers.endless):
            finding_of(behave, timeout=SOON, text="no such text")
        eventually(lambda: not [one for one in threading.enumerate() if isinstance(one, threading.Timer)])

    def test_it_takes_no_longer_than_it_may(self) -> None:
        began_at = time.monotonic()
        finding_of(servers.trickling, timeout=SOON)
        assert time.monotonic() - began_at < 15  # a machine under load; without the deadline: for ever


def test_no_more_is_read_than_64_kib() -> None:
    assert request.MAX_BODY_BYTES == 65_536
