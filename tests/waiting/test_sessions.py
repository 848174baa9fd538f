"""The number of database sessions that waiters occupy."""

import pytest
from django.db import OperationalError, connection, connections

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
BACKGROUND = 3  # the background thread, the thread that looks, hints


UNPRINTABLE = 3854  # MySQL cannot show the statement that another test's session runs at that moment


def asked(sql: str) -> int:
    while True:
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return int(cursor.fetchone()[0])
        except OperationalError as error:
            if error.args[0] != UNPRINTABLE:
                raise


def acquire_and_release() -> None:
    with Proxy.pool.lease(timeout=40):
        pass


def test_of_twenty_waiting_threads_one_has_a_session() -> None:
    held = hold(new(Proxy))
    before = asked(COUNT[connection.vendor])
    waiting = [InBackground(acquire_and_release) for _ in range(20)]
    eventually(lambda: len(in_line()) == 20)
    eventually(lambda: asked(COUNT[connection.vendor]) <= before + BACKGROUND)
    held.release()
    for one in waiting:
        one.result()


@pytest.mark.parametrize("begun_by", ["the thread", "an acquisition before"])
def test_an_earlier_session_stays_open(begun_by: str) -> None:
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

    waiting = InBackground(wait)
    eventually(lambda: len(in_line()) == 1)  # it looks, for the other one, too
    other = InBackground(wait_without)
    eventually(lambda: len(in_line()) == 2)
    eventually(
        lambda: own[0].connection is None, within=20
    )  # by then the first one would have given up its own, too
    held.release()
    before, after = waiting.result()
    other.result()
    assert before == after
