"""Every test here works on committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.resources.kept import fresh_lists, keep  # noqa: F401 (fixtures)
from tests.waiting.waiters import removed_at_once, waiting  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
