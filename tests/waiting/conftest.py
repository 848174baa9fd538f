"""Every test here works on committed rows."""

import pytest

from tests.committed import *  # noqa: F403 (fixtures)
from tests.resources.kept import fresh_lists, keep  # noqa: F401 (fixtures)
from tests.waiting.looks import (  # noqa: F401 (fixtures)
    every_ticket_is_forgotten,
    looks,
    the_first_look_is_far_away,
)
from tests.waiting.turns import line  # noqa: F401 (a fixture)
from tests.waiting.waiters import removed_at_once, waiting  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass
