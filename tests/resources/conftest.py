"""Every test here works on committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.resources.recording_resource import fresh_lists, keep  # noqa: F401 (fixtures)
from tests.waiting.threads import waiting  # noqa: F401 (fixture)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
