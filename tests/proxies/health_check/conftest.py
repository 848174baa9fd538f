"""Every test here works on committed rows."""

from collections.abc import Iterator

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.proxies.health_check import servers
from tests.proxies.health_check.servers import serving


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture
def target() -> Iterator[int]:
    """Serve a local page; yield its port."""
    with serving(servers.page) as (port, _):
        yield port
