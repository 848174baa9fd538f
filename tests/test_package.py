"""The public names of the package."""

import pytest

import resourcepool


@pytest.mark.parametrize("name", resourcepool.__all__)
def test_every_name_that_is_offered_can_be_had(name: str) -> None:
    assert getattr(resourcepool, name)


def test_any_other_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'resourcepool' has no attribute 'Lock'"):
        resourcepool.Lock  # noqa: B018
