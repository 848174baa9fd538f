"""NOTIFY wakes all sessions that listen, so the more of them there are, the fewer hints are worth their cost."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.hints.choice import chosen
from resourcepool.hints.postgresql import WAKES
from tests.hints.conftest import choose
from tests.hints.ends import End
from tests.hints.services import Service, started


@pytest.fixture
def server(settings: Any) -> Iterator[Service]:
    with started("postgresql") as service:
        choose(settings, service.hints)
        yield service
        choose(settings, None)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("server")
def test_the_hints_that_are_worth_their_cost_depend_on_how_many_listen(end: Callable[[str], End]) -> None:
    choice = chosen()
    assert choice
    transport = choice.open()
    transport.send(["nobody"])
    assert transport.most_per_second() == WAKES
    for name in ("one", "two", "three", "four"):
        end(name).connected()
    assert transport.most_per_second() == WAKES / 4
    transport.close()
