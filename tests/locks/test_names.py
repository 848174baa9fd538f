"""Names of every kind: none is another one, and whoever says the same name means the same thing."""

import enum
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from resourcepool.exceptions import BadOption
from resourcepool.locks import Lock, RWLock, Semaphore, registry
from resourcepool.models import Ticket
from tests.eventually import InBackground, eventually

NAMES = (
    *("\U0001f600" * 200, '"' * 200, "\\" * 200),  # as long as can be, in bytes and in JSON
    *("a", "a#1", "a#1#1", "a#upgrade", "a:b", "a%", "a_", "A", "ss", "\xdf"),
    *("\xe9", "e\u0301", "\u05e9\u05dc\u05d5\u05dd"),  # composed and not, from right to left
)
KINDS: dict[str, Callable[[str], Any]] = {
    "lock": Lock,
    "semaphore": Semaphore,
    "writer": lambda name: RWLock(name, readers=2).write(),
}
of_each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Name(str, enum.Enum):  # noqa: UP042 (a StrEnum formats as what it is)
    """What formats as another text than it is."""

    REPORT = "report"


@of_each_kind
def test_no_name_is_another_one(kind: Callable[[str], Any]) -> None:
    for name in NAMES:
        assert kind(name).acquire(blocking=False), name


@of_each_kind
@pytest.mark.parametrize(
    "name", [*NAMES[:3], "a#1", Name.REPORT], ids=["emoji", "quotes", "slashes", "#", "enum"]
)
def test_whoever_waits_for_a_name_is_handed_it(kind: Callable[[str], Any], name: str) -> None:
    kind(name).acquire()
    waits = InBackground(lambda: kind(name).acquire(timeout=30) is not None)
    eventually(Ticket.objects.waiting().exists)
    kind(name).release()
    assert waits.result()


@of_each_kind
def test_a_member_of_an_enum_is_the_name_that_it_stands_for(kind: Callable[[str], Any]) -> None:
    kind(Name.REPORT).acquire()
    assert InBackground(lambda: kind("report").acquire(blocking=False)).result() is None
    assert InBackground(lambda: kind("Name.REPORT").acquire(blocking=False) is not None).result()


@of_each_kind
def test_a_name_that_was_used_once_is_not_remembered_by_its_thread(kind: Callable[[str], Any]) -> None:
    for number in range(3):
        with kind(f"once {number}"):
            pass
    assert not registry.current_owner().holds


@of_each_kind
def test_rows_are_made_again_after_the_rollback_of_a_test_case(kind: Callable[[str], Any]) -> None:
    around = transaction.atomic()
    around._from_testcase = True  # type: ignore[attr-defined]
    with around:
        for _ in range(2):
            one = kind("report")
            one.acquire()
            one.release()
        transaction.set_rollback(True)
    assert kind("report").acquire(blocking=False)


@pytest.mark.parametrize(
    ("name", "character"),
    [
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "U+200D ZERO WIDTH JOINER"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "U+200C ZERO WIDTH NON-JOINER"),
        ("two\nlines", "U+000A"),
    ],
    ids=["family emoji", "Persian", "two lines"],
)
def test_a_name_that_is_refused_says_which_character_is_not_allowed(name: str, character: str) -> None:
    """It is one that no screen shows: two names that look alike would be two locks."""
    with pytest.raises(BadOption, match=re.escape(f"printable characters; {character} is not printable")):
        Lock(name)
