"""A checking process is stopped."""

import signal
from typing import Any

from django.db import connections

from resourcepool.db.dialect import DbLater
from resourcepool.events import sentence_for
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from tests.app.rows import busy_for, columns, new
from tests.eventually import eventually
from tests.proxies.health_check import servers


def checking(port: int) -> None:
    """Run the command; the proxy on ``port`` never answers."""
    from django.conf import settings
    from django.core.management import execute_from_command_line

    chosen = {"url": "http://target.test/", "timeout": 8, "allow": ["127.0.0.1"]}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
    execute_from_command_line(["manage.py", "resourcepool_check", "proxy"])


def rows_on(port: int) -> list[Any]:
    away = {
        "status": Status.QUARANTINED,
        "reason": sentence_for("check", why=sentence_for("connection_refused")),
        "until": DbLater(1_000),
    }
    free = new(Proxy, host="127.0.0.1", port=port)
    quarantined = new(Proxy, host="127.0.0.1", port=port, username="x", busy_before=DbLater(1_000), **away)
    connections.close_all()
    return [free, quarantined]


def test_ctrl_c_gives_everything_back_as_it_was(spawn: Any) -> None:
    with servers.serving(servers.silent) as (port, seen):
        rows = rows_on(port)
        child = spawn(checking, port)
        eventually(lambda: len(seen.heads) == 2, because=lambda: child.output)
        assert [columns(row)["holder"].endswith("/check") for row in rows] == [True, True]
        child.send(signal.SIGINT)
        seen.is_over.set()  # ends the running checks, for which it waits
        code = child.wait()
    assert code == 130, child.output
    assert "interrupted" in child.output
    assert "Traceback" not in child.output
    assert [columns(row)["holder"] for row in rows] == ["", ""]
    assert busy_for(rows[0]) <= 0
    assert busy_for(rows[1]) > 900
    assert [columns(row)["verdict"] for row in rows] == ["", ""]
