"""All tests here use committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
