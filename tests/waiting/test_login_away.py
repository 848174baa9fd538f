"""The database refuses the login for a while, as during a password change: waiters stay, and learn the cause."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from resourcepool.elections import Election
from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable
from resourcepool.locks import Lock
from resourcepool.models import Ticket
from resourcepool.waiting.poll import poller_on
from tests.aliases import alias
from tests.eventually import InBackground, eventually

pytestmark = pytest.mark.only("mysql", "postgresql")
AWAY = "away"
ALL = {
    "mysql": (
        "CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 's3cret'",
        "GRANT ALL ON `{database}`.* TO {name}@'127.0.0.1'",
    ),
    "postgresql": (
        "CREATE ROLE {name} LOGIN PASSWORD 's3cret'",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}",
    ),
}
REFUSE = {
    "mysql": ("ALTER USER {name}@'127.0.0.1' IDENTIFIED BY 'other'",),
    "postgresql": (
        "ALTER ROLE {name} NOLOGIN",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'",
    ),
}
ADMIT = {
    "mysql": ("ALTER USER {name}@'127.0.0.1' IDENTIFIED BY 's3cret'",),
    "postgresql": ("ALTER ROLE {name} LOGIN",),
}
DROP = {
    "mysql": ("DROP USER {name}@'127.0.0.1'",),
    "postgresql": ("DROP OWNED BY {name}", "DROP ROLE {name}"),
}
SAID = {"mysql": "Access denied", "postgresql": "not permitted to log in"}


class User:
    """A database user, as an operator manages it."""

    def __init__(self) -> None:
        self.database = str(connection.settings_dict["NAME"])
        self.name = f"away_{self.database}"[:63]

    def do(self, statements: dict[str, tuple[str, ...]]) -> None:
        with connection.cursor() as cursor:
            for statement in statements[connection.vendor]:
                cursor.execute(statement.format(name=self.name, database=self.database))
            if connection.vendor == "mysql" and statements is REFUSE:
                self._end_sessions(cursor)

    def _end_sessions(self, cursor: Any) -> None:
        """End the user's sessions; MySQL has no KILL USER."""
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = %s", [self.name])
        for (session,) in cursor.fetchall():
            with contextlib.suppress(OperationalError):  # it has ended
                cursor.execute(f"KILL {int(session)}")


@pytest.fixture
def user() -> Iterator[User]:
    """The user of the connection to all leased tables."""
    one = User()
    one.do(ALL)
    try:
        with alias(AWAY, USER=one.name, PASSWORD="s3cret", HOST="127.0.0.1"):
            yield one
    finally:
        one.do(REFUSE)  # or sessions of background threads would remain
        one.do(DROP)


def with_lock(**options: Any) -> bool:
    with Lock("report", **options) as held:
        return held.is_held


def in_line(count: int) -> bool:
    return bool(poller_on(AWAY).turns.waiters) and Ticket.objects.using("default").waiting().count() == count


def test_a_waiter_goes_on_until_its_time_is_up_and_one_that_waits_longer_is_served(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    enough = threading.Event()
    lead, report = Election("report"), Lock("report")
    term, held = lead.campaign(), report.acquire()
    assert held is not None
    waits = InBackground(with_lock)
    campaigns = InBackground(lambda: Election("report").campaign(timeout=600, stop=enough.is_set))
    eventually(lambda: in_line(2))
    user.do(REFUSE)
    eventually(lambda: getattr(poller_on(AWAY).db_error, "is_login", False))
    with pytest.raises(DatabaseUnavailable, match=SAID[connection.vendor]):
        InBackground(lambda: Lock("other").acquire(timeout=600)).result()
    enough.set()
    with pytest.raises(AcquireTimeout, match=SAID[connection.vendor]):
        campaigns.result()
    assert waits.is_alive()
    user.do(ADMIT)
    report.release()
    assert waits.result()
    term.resign()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert "s3cret" not in caplog.text
