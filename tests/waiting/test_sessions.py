"""How many sessions on the server those occupy who wait."""

import pytest
from django.db import connection, connections

from resourcepool.models import Proxy
from tests.app.models import Device
from tests.app.rows import hold, new
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually

pytestmark = pytest.mark.only("mysql", "postgresql")

COUNT = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = CURRENT_DATABASE()",
}
ITS = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
BACKGROUND = 4  # threads of the package: keeper, waiters, history, hints


def asked(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])


def acquire_and_release() -> None:
    with Proxy.pool.lease(timeout=40):
        pass


def test_twenty_threads_that_wait_occupy_none_of_their_own() -> None:
    held = hold(new(Proxy))
    before = asked(COUNT[connection.vendor])
    waiting = [InBackground(acquire_and_release) for _ in range(20)]
    eventually(lambda: len(in_line()) == 20)
    eventually(lambda: asked(COUNT[connection.vendor]) <= before + BACKGROUND)
    held.release()
    for one in waiting:
        one.result()


@pytest.mark.parametrize("begun_by", ["the thread", "an acquisition before"])
def test_who_had_one_before_keeps_it(begun_by: str) -> None:
    held, own = hold(new(Proxy)), []
    new(Device)

    def wait() -> tuple[int, int]:
        if begun_by == "an acquisition before":
            Device.pool.acquire().release()
        before = asked(ITS[connection.vendor])
        acquire_and_release()
        return before, asked(ITS[connection.vendor])

    def wait_without() -> None:
        own.append(connections["default"])
        acquire_and_release()

    waiting, other = InBackground(wait), InBackground(wait_without)
    eventually(lambda: len(in_line()) == 2)
    eventually(
        lambda: own[0].connection is None, within=20
    )  # by then the first one would have given up its own, too
    held.release()
    before, after = waiting.result()
    other.result()
    assert before == after
