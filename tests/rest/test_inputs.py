"""Any input gets a response that a program can read, and no lease."""

import base64
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.db import OperationalError
from rest_framework.test import APIClient

from resourcepool.models import Proxy
from resourcepool.rest.refusals import LengthRequired
from resourcepool.rest.status import NAMED_SYSTEMS
from resourcepool.rest.view import refuse_without_length
from tests.app.rows import columns, new
from tests.rest.conftest import Caller

HALF = "\\ud800"  # a lone surrogate in JSON, which can be neither stored nor returned
CODECS = ("zlib", "bz2", "base64", "rot13", "undefined", "utf-16")


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("pools/proxy/acquire", f'{{"{HALF}": 1}}'),
        ("pools/proxy/acquire", f'{{"where": {{"{HALF}": 1}}}}'),
        ("pools/proxy/acquire", f'{{"where": {{"host": "{HALF}"}}}}'),
        ("locks/nightly/acquire", f'{{"holder": "{HALF}"}}'),
        ("leases/release", f'{{"lease": "a:b:{HALF}"}}'),
        ("channels/news/publish", f'{{"payload": "{HALF}"}}'),
        ("pools/proxy/operations/drain", f'{{"all": true, "reason": "{HALF}"}}'),
    ],
)
def test_half_a_surrogate_pair_is_refused(root: Caller, address: str, body: str) -> None:
    row = new(Proxy)
    answer = root.send(address, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "BadOption")
    assert (columns(row)["holder"], columns(row)["in_service"]) == ("", True)


@pytest.mark.parametrize("kind", ["pools", "pools/proxy/resources", "locks", "queues", *NAMED_SYSTEMS])
def test_nothing_has_a_name_with_nul(root: Caller, kind: str) -> None:
    for name in ("\0", "a\0b"):
        answer = root.get(f"{kind}/{name}")
        assert (answer.status_code, answer.json()["error"]) == (404, "NotFound")
    assert root.post("locks/a\0b/acquire").status_code == 404


def test_a_parameter_with_nul_is_refused(root: Caller) -> None:
    for address, name in (
        ("pools/proxy/leases", "holder"),
        ("pools/proxy/leases", "host"),
        ("pools/proxy/resources", "tag"),
        ("pools/proxy/resources", "after"),
        ("locks", "prefix"),
        ("streams", "containing"),
    ):
        for value in ("\0", "a\0b"):
            answer = root.get(address, **{name: value})
            assert answer.status_code == 400, (address, name, answer.content)


@pytest.mark.parametrize("name", ["a\0", "\0", "a\0b"])
def test_a_user_name_with_nul_is_nobodys(db: None, name: str) -> None:
    nobody = APIClient(SERVER_NAME="localhost", raise_request_exception=False)
    basic = base64.b64encode(f"{name}:pw".encode()).decode()
    answer = nobody.get("/api/pools", HTTP_AUTHORIZATION=f"Basic {basic}")
    assert (answer.status_code, answer.json()["error"]) == (403, "AuthenticationFailed")


def test_a_session_key_with_nul_is_nobodys(db: None) -> None:
    nobody = APIClient(SERVER_NAME="localhost", raise_request_exception=False)
    nobody.cookies["sessionid"] = "12345678\0"
    assert nobody.get("/api/pools").status_code == 403


def test_what_fails_in_a_projects_own_authentication_is_not_hidden(
    root: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("deep inside")

    monkeypatch.setattr("rest_framework.authentication.BasicAuthentication.authenticate", fail)
    with pytest.raises(ValueError, match="deep inside"):
        APIClient(SERVER_NAME="localhost").get("/api/pools")


@pytest.mark.parametrize(
    ("method", "address"), [("get", ""), ("get", "pools/proxy/operations"), ("post", "pools/proxy/acquire")]
)
def test_a_parameter_that_would_do_nothing_is_refused(root: Caller, method: str, address: str) -> None:
    row = new(Proxy)
    answer = getattr(root, method)(f"{address}?timeout=20")
    assert (answer.status_code, answer.json()["name"]) == (400, "timeout")
    assert columns(row)["holder"] == ""


@pytest.mark.parametrize("codec", CODECS)
def test_json_is_utf_8_whatever_the_header_says(root: Caller, codec: str) -> None:
    row = new(Proxy, host="é.example")
    wanted = json.dumps({"where": {"host": "é.example"}}, ensure_ascii=False)
    answer = root.send("pools/proxy/acquire", wanted.encode(), f"application/json; charset={codec}")
    assert (answer.status_code, answer.json()["id"]) == (201, row.pk)


@pytest.mark.parametrize("at", ["pools/proxy/acquire", "leases/renew", "streams/x/submit"])
def test_what_is_longer_than_the_project_takes_is_refused_unread(root: Caller, at: str, settings: Any) -> None:
    new(Proxy)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    answer = root.send(at, '{"holder": "' + "x" * 1_000 + '"}')
    assert (answer.status_code, answer.json()["name"]) == (400, "body")
    assert "too long" in answer.json()["detail"]


def unmeasured(body: bytes, **meta: Any) -> Any:
    """Return the response to a body without a length, as web servers pass it on."""
    source = io.BytesIO(body)
    meta = {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": "", "wsgi.input": source, **meta}
    boss = User.objects.get(username="root")
    client = APIClient(SERVER_NAME="localhost")
    client.force_authenticate(boss)
    return client.generic("POST", "/api/pools/proxy/acquire", **meta)


@pytest.mark.parametrize(
    "meta",
    [
        {"HTTP_TRANSFER_ENCODING": "chunked"},
        {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True},
        {"wsgi.input_terminated": True},  # HTTP/2 has no such header
    ],
    ids=str,
)
def test_a_body_in_chunks_is_refused_and_nothing_is_leased(root: Caller, meta: dict[str, Any]) -> None:
    row = new(Proxy, country="DE")
    answer = unmeasured(b'{"where": {"country": "US"}}', **meta)
    assert (answer.status_code, answer.json()["error"]) == (411, "LengthRequired")
    assert columns(row)["holder"] == ""


def test_a_body_in_chunks_is_refused_under_asgi(root: Caller) -> None:
    scope = {"type": "http", "method": "POST", "path": "/api/pools/proxy/acquire", "headers": []}
    request = ASGIRequest(scope, io.BytesIO(b'{"where": {"country": "US"}}'))
    with pytest.raises(LengthRequired):
        refuse_without_length(request)
    refuse_without_length(ASGIRequest(scope, io.BytesIO()))


def test_no_body_at_all_is_an_empty_one(root: Caller) -> None:
    row = new(Proxy)
    assert unmeasured(b"", **{"wsgi.input_terminated": True}).json()["id"] == row.pk


@pytest.mark.parametrize("depth", [10, 100, 300, 500, 700, 900, 950, 1_000, 3_000, 100_000])
@pytest.mark.parametrize("name", ["ttl", "where", "payload", "params", "ids", "lease"])
def test_lists_in_lists(root: Caller, name: str, depth: int) -> None:
    address = {"payload": "channels/x/publish", "params": "streams/x/submit", "lease": "leases/renew"}.get(name)
    address = "pools/proxy/operations/drain" if name == "ids" else address or "pools/proxy/acquire"
    more = '"type": "t", ' if name == "params" else ""
    nested = '{"host":' + "[" * depth + "]" * depth + "}" if name == "where" else "[" * depth + "]" * depth
    answer = root.send(address, f'{{{more}"{name}": {nested}}}')
    assert answer.status_code in (201, 400, 423)


def test_what_the_database_says_is_logged_and_not_answered(
    root: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("deep\n\tinside")

    monkeypatch.setattr("resourcepool.rest.status.pools", fail)
    answer = root.get("pools")
    assert (answer.status_code, answer.json()["error"], answer["Retry-After"]) == (
        503,
        "DatabaseUnavailable",
        "1",
    )
    assert "deep inside" not in answer.json()["detail"]
    assert "Pools: deep inside" in caplog.text
    assert "Traceback" not in caplog.text  # one line per request in an outage


def test_what_is_wrong_with_the_project_is_logged(root: Caller, caplog: pytest.LogCaptureFixture) -> None:
    assert root.post("pools/ghost/acquire").json()["error"] == "NotMigrated"
    assert "testapp_ghost" in caplog.text
