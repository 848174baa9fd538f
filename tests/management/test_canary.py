"""A password is in no output of the operator's commands, whatever it is asked for."""

from pathlib import Path

import pytest

from resourcepool.models import Proxy
from tests.app.rows import hold, new
from tests.history.test_recorder import told
from tests.management.operated import run

pytestmark = pytest.mark.usefixtures("history")

CANARY = "CANARY-hunter2"


@pytest.fixture
def proxy() -> Proxy:
    found: Proxy = new(Proxy, host="h.example", username="joe", password=CANARY)
    with Proxy.pool.lease():
        pass
    told(found)
    hold(found, holder="crawler 7")
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["status", "proxy"],
        ["status", "--leases", "--json"],
        ["why", "h.example"],
        ["why", "h.example", "--json"],
        ["why", "crawler 7", "--json"],
        ["why", f"http://joe:{CANARY}@h.example:3128"],
        ["why", f"http://joe:{CANARY}@elsewhere:3128"],
        ["why", CANARY[:6]],
        ["close", "--all", "--reason", "x", "--dry-run"],
        ["close", "--all", "--reason", "x", "--yes", "--json"],
        ["drain", "proxy", "--all", "--reason", "x", "--yes"],
        ["drain", "proxy", "--all", "--reason", "x", "--yes", "--wait", "0"],
        ["drain", "proxy", "--where", f"password={CANARY}", "--reason", "x"],
        ["export"],
        ["export", "--format", "json"],
        ["export", "--format", "lines", "--events"],
    ],
)
def test_it_is_nowhere(proxy: Proxy, words: list[str], caplog: pytest.LogCaptureFixture) -> None:
    shown = run(*words)
    assert shown.all
    assert CANARY not in shown.all + caplog.text
    assert "sealed:" not in shown.all
    assert proxy.password == CANARY


def test_a_file_without_secrets_has_none(proxy: Proxy, tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    assert run("export", "--output", file).code == 0
    assert proxy.host in file.read_text()
    assert CANARY not in file.read_text()
