"""Every test here works on committed rows."""

from typing import Any

import pytest

from tests.app.rows import Model, leased_models, new
from tests.committed import *  # noqa: F403 (fixtures)


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(params=leased_models(), ids=lambda model: model._meta.label)
def model(request: pytest.FixtureRequest) -> Model:
    return request.param


@pytest.fixture
def row(model: Model) -> Any:
    return new(model)
