"""No language and no row stays behind for the next test."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from resourcepool.models import Event, Sample
from tests.committed import transactional_db

__all__ = ["transactional_db"]


@pytest.fixture(autouse=True)
def _language_of_the_project() -> Iterator[None]:
    yield
    translation.deactivate()  # the middleware leaves its thread with the language of the last request


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """Rows that are committed: a table that is not there ends the transaction on PostgreSQL."""
    yield
    for model in (Event, Sample, User):
        model.objects.all().delete()
