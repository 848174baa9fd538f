"""The lookup ``begins``, on every database."""

import pytest

from resourcepool.locks.models import Lock as LockRow

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("beginning", "found"),
    [
        ("a", ["a", "a%", "a_b", "aXb"]),
        ("A", ["A"]),
        ("a%", ["a%"]),
        ("a_", ["a_b"]),
        ("a\\", []),
        ("日", ["日", "日😀"]),
        ("x", []),
    ],
)
def test_it_is_no_pattern_and_knows_upper_and_lower_case(beginning: str, found: list[str]) -> None:
    for name in ("a", "A", "a%", "a_b", "aXb", "b", "日", "日😀"):
        LockRow.objects.create(name=name)
    assert set(LockRow.objects.filter(name__begins=beginning).values_list("name", flat=True)) == set(found)
    assert LockRow.objects.exclude(name__begins=beginning).count() == 8 - len(found)
