"""Reading a file needs no database; tests that do say so."""

import pytest


@pytest.fixture(autouse=True)
def _on_committed_rows() -> None:
    """Take the place of the fixture of this name one folder up, which opens the database for every test."""
