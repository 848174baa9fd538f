"""The programs of examples/rest, unchanged, against a real web server: they lease, use, renew and release."""

import base64
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.eventually import eventually

EXAMPLES = Path(__file__).parents[2] / "examples" / "rest"
NEEDED = ("bash", "curl", "jq")
WITH_PROXY = pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="needs bash, curl and jq")
PROGRAMS = [
    pytest.param([sys.executable, str(EXAMPLES / "crawler.py")], id="crawler.py"),
    pytest.param([str(EXAMPLES / "with-proxy.sh"), "curl", "-sS"], id="with-proxy.sh", marks=WITH_PROXY),
]


class Pages(BaseHTTPRequestHandler):
    """A proxy that serves every page, and records the requests."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def asked(transactional_db: None) -> Iterator[list[str]]:
    """The pages that were requested from the only proxy."""
    handler = type("Handler", (Pages,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        new(Proxy, host="127.0.0.1", port=server.server_port)
        yield handler.asked
        server.shutdown()


@pytest.fixture
def environment(transactional_db: None, live_server: Any) -> dict[str, str]:
    """The environment of the programs: the URL of the API, and their credentials."""
    User.objects.create_superuser("root", password="pw")
    found = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    auth = "Basic " + base64.b64encode(b"root:pw").decode()
    return {**found, "API": f"{live_server.url}/api", "AUTH": auth}


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_fetches_through_the_proxy_and_gives_it_back(
    asked: list[str], environment: dict[str, str], program: list[str]
) -> None:
    subprocess.run([*program, "http://books.example/1"], env=environment, check=True, timeout=60)
    assert asked == ["http://books.example/1"]
    assert columns(Proxy.objects.get())["holder"] == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_refused_it_says_why_and_ends(
    asked: list[str], environment: dict[str, str], program: list[str]
) -> None:
    wrong = {**environment, "AUTH": "Basic eDp4"}
    command = [*program, "http://books.example/1"]
    ended = subprocess.run(command, env=wrong, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "AuthenticationFailed" in ended.stderr
    assert asked == []


@WITH_PROXY
def test_a_lost_lease_ends_the_command(asked: list[str], environment: dict[str, str]) -> None:
    script = subprocess.Popen([str(EXAMPLES / "with-proxy.sh"), "sleep", "300"], env=environment)
    eventually(lambda: Proxy.objects.held().exists())
    Proxy.objects.all().revoke("a test")
    assert script.wait(60) == 128 + 15
