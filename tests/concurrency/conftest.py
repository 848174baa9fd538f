"""All tests in this folder use committed rows."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.committed import *  # noqa: F403 (fixtures)
from tests.concurrency.stoppable_server import Server, forward
from tests.spawned import Spawner
from tests.waiting.threads import waiting  # noqa: F401 (fixture)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture
def server(spawn: Spawner) -> Iterator[Server]:
    """The database server behind a separate process, which can be stopped."""
    address = connection.settings_dict
    server = Server(spawn(forward, address["HOST"], int(address["PORT"])))
    yield server
    server.thaw()
