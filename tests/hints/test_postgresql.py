"""NOTIFY wakes all listening sessions, so more listeners mean a lower limit of hints."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.inspection import rows
from resourcepool.hints.choice import Choice, configured
from resourcepool.hints.postgresql import MAX_WAKEUPS_PER_SECOND
from tests.hints.conftest import choose
from tests.hints.receiver import End
from tests.hints.services import Service, started


@pytest.fixture
def server(settings: Any) -> Iterator[Service]:
    with started("postgresql") as service:
        choose(settings, service.hints)
        yield service
        choose(settings, None)


def choice() -> Choice:
    found = configured()
    assert found
    return found


@pytest.mark.usefixtures("server")
def test_the_limit_depends_on_the_number_of_listeners(end: Callable[[str], End]) -> None:
    transport = choice().open()
    transport.send(["nobody"])
    assert transport.max_per_second() == MAX_WAKEUPS_PER_SECOND
    for name in ("one", "two", "three", "four"):
        end(name).connected()
    assert transport.max_per_second() == MAX_WAKEUPS_PER_SECOND / 4
    transport.close()


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_session_has_synchronous_commits_again_after_a_hint(settings: Any) -> None:
    """Behind a pooler, other clients get the session, and their commits must be durable."""
    setting = "SELECT CURRENT_SETTING('synchronous_commit')"
    choose(settings, "postgresql")
    transport: Any = choice().open()
    try:
        transport.send(["nobody"])
        assert rows(transport._connection, setting) == rows(connection, setting) != [("off",)]
    finally:
        transport.close()
