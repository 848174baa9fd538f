"""Reading a file needs no database; tests that do say so."""

import pytest

from tests.resources.importing.proxies import bring  # noqa: F401 (fixture)


@pytest.fixture(autouse=True)
def _on_committed_rows() -> None:
    """Take the place of the fixture of this name one folder up, which opens the database for every test."""
