"""A ``Resource`` for tests that records its checks and changes."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from resourcepool import Resource
from resourcepool.models import Proxy


class RecordingResource(Resource):
    """Valid unless its host is in ``bad``; records the checked hosts."""

    model = Proxy
    occupation_delta = 2
    occupation_interval = 0.05
    acquire_timeout = 5
    bad: ClassVar[set[str]] = set()
    asked: ClassVar[list[str]] = []

    def is_valid(self) -> bool:
        self.asked.append(self.o.host)
        return self.o.host not in self.bad


def kind(**attributes: Any) -> type[RecordingResource]:
    return type("RecordingResource", (RecordingResource,), attributes)


def quarantined() -> list[str]:
    return sorted(Proxy.objects.quarantined().values_list("host", flat=True))


class Changes:
    """An ``on_change`` that records its calls."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any]] = []

    def __call__(self, old: Any, new: Any) -> None:
        self.seen.append((old, new))


@pytest.fixture(autouse=True)
def fresh_lists() -> None:
    RecordingResource.bad, RecordingResource.asked = set(), []


@pytest.fixture
def keep() -> Iterator[Callable[..., RecordingResource]]:
    """Create one; it is terminated after the test."""
    made: list[Resource] = []

    def make(kind: type[Resource] = RecordingResource, **options: Any) -> Any:
        made.append(kind(**options))
        return made[-1]

    yield make
    for one in made:
        one.terminate()
        if one.ident is not None:
            one.join(60)
            assert not one.is_alive()
