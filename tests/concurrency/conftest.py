"""Every test here works on committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.waiting.waiters import waiting  # noqa: F401 (fixture)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
