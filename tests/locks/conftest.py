"""Every test here works on committed rows."""

from collections.abc import Iterator

import pytest

from resourcepool.locks import permits, registry
from tests.committed import *  # noqa: F403 (fixtures)


@pytest.fixture(autouse=True)
def _nothing_held_from_before() -> Iterator[None]:
    """Forget what the thread of the tests holds: the next test would take it once more; and which rows were there."""
    yield
    registry.forget()
    for memory in (permits.counted, permits.recently_released._free):
        memory.clear()
    permits.warn_once.cache_clear()


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
