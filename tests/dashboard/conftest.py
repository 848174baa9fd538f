"""All tests here use committed rows, which are removed afterwards."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from resourcepool.models import Event, Move, Queue, QueueGroup, Sample, Server
from tests.committed import *  # noqa: F403 (fixtures)


@pytest.fixture(autouse=True)
def _nothing_stays(transactional_db: None) -> Iterator[None]:
    yield
    for model in (Event, Sample, Move, Queue, Server, QueueGroup, User):
        model.objects.all().delete()
