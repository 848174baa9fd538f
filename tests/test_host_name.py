"""Any host name can appear in holders, queue servers and the history."""

import pytest

from resourcepool import options
from resourcepool.queues import QueueServer
from resourcepool.text import host_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("web-1", "web-1"),
        ("", "unnamed"),
        ("  ", "unnamed"),
        ("web\x1b[31m\n", "web_[31m_"),
        ("w\udcffb", "w_b"),
        ("a/b", "a_b"),
        ("h" * 500, "h" * 80),
    ],
)
@pytest.mark.django_db
def test_a_server_can_be_called_after_it(name: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: name)
    assert host_name() == shown
    assert QueueServer("work").name == shown
    assert options.name("name", shown, most=80) == shown
