"""All tests in this folder use committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.resources.recording_resource import fresh_lists, keep  # noqa: F401 (fixtures)
from tests.waiting.looks import distant_look, looks  # noqa: F401 (fixtures)
from tests.waiting.loop_turns import line  # noqa: F401 (a fixture)
from tests.waiting.threads import removed_at_once, waiting  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
