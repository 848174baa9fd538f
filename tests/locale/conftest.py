"""Resets the language and removes rows after each test."""

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
    translation.deactivate()  # the middleware leaves the last request's language active


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """Committed rows: on PostgreSQL a missing table would abort the transaction."""
    yield
    for model in (Event, Sample, User):
        model.objects.all().delete()
