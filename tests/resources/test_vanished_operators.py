"""An operator's process that vanishes during a change does not keep rows locked for hours."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from resourcepool.models import Proxy, QueueGroup
from tests.app.rows import new
from tests.db.test_short_transactions import idle_limit

pytestmark = pytest.mark.only("mysql", "postgresql")


def import_proxies(folder: Path) -> None:
    file = folder / "proxies.txt"
    file.write_text("http://198.51.100.7:3128\n")
    call_command("resourcepool_import", str(file))


LOCKS = re.compile("FOR UPDATE|(^|FOR )(UPDATE|INSERT) ")
CHANGES: dict[str, Callable[[Path], object]] = {
    "delete": lambda folder: Proxy.objects.all().delete(),
    "import": import_proxies,
    "rotate": lambda folder: call_command("resourcepool_rotate_secrets"),
    "take out": lambda folder: Proxy.objects.all().drain("new cable"),
    "queue group": lambda folder: QueueGroup.objects.create(name="orders").save(),
    "acquire_many": lambda folder: Proxy.pool.acquire_many(2, wait=False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_has_a_limit_while_it_has_rows_locked(name: str, tmp_path: Path) -> None:
    usual = idle_limit(connection)
    for _ in range(3):
        new(Proxy, password="secret")
    sent: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        sent.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        CHANGES[name](tmp_path)
    limited = next(number for number, sql in enumerate(sent) if "idle" in sql and "timeout" in sql)
    locking = next(number for number, sql in enumerate(sent) if LOCKS.search(sql))
    assert limited < locking
    assert idle_limit(connection) == usual, "for what comes after it"
