"""How names stand, page by page."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.exceptions import BadOption
from resourcepool.models import Ticket
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import HOLDERS_ON_PAGE, LockStatus, lock_named, locks
from resourcepool.status.snapshots import as_data
from tests.status.locks.conftest import A, B, C, later, lock, permits, stands, waits

pytestmark = pytest.mark.django_db


def shown(**asked: Any) -> list[tuple[str, str]]:
    return [(one.kind.value, one.name) for one in locks(**asked).locks]


def one(kind: str, name: str) -> LockStatus:
    (found,) = lock_named(name, kind)
    return found


@pytest.mark.usefixtures("crowd")
class TestOfEachKind:
    def test_a_lock_says_who_holds_it_and_who_waits(self) -> None:
        status = one("lock", "busy")
        assert (status.permits, status.held, status.fence, status.waiters) == (1, 1, 7, 2)
        assert [(held.holder, held.permits, held.fence) for held in status.holders] == [(A, 1, 7)]
        assert 0 < status.holders[0].expires_in <= 600
        assert 40 <= (status.longest_wait or 0) < 4_000
        assert [waiter.holder for waiter in status.line] == [later(B), later(C)]

    def test_a_semaphore_says_how_many_permits_each_holder_has(self) -> None:
        status = one("semaphore", "busy")
        assert (status.permits, status.held, status.fence, status.waiters) == (4, 3, 4, 1)
        assert [(held.holder, held.permits) for held in status.holders] == [(A, 2), (B, 1)]
        assert [(waiter.holder, waiter.permits) for waiter in status.line] == [(later(C), 2)]

    def test_a_condition_says_who_waits(self) -> None:
        status = one("condition", "orders")
        assert (status.permits, status.held, status.holders, status.waiters) == (0, 0, (), 1)

    def test_permits_out_of_service_count_while_they_are_held(self) -> None:
        permits("semaphore", "smaller", [A, "", B], out=1)
        status = one("semaphore", "smaller")
        assert (status.permits, status.held) == (2, 2)

    def test_a_free_one_and_an_expired_one_are_held_by_nobody(self) -> None:
        gone = lock("gone", A)
        type(gone).objects.filter(pk="gone").update(busy_before="2000-01-01T00:00:00Z")
        assert [(one("lock", name).held, one("lock", name).holders) for name in ("idle", "gone")] == [
            (0, ())
        ] * 2

    def test_a_dead_waiter_does_not_wait(self) -> None:
        Ticket.objects.update(busy_before="2000-01-01T00:00:00Z")
        assert shown(waited=True) == []
        assert one("lock", "busy").waiters == 0
        assert lock_named("orders") == []

    def test_an_unknown_name_is_not_there(self) -> None:
        for name in ("BUSY", "nothing", "a\nb", "x" * 300, "a\0b"):
            assert lock_named(name) == []
        with pytest.raises(BadOption, match="lock, semaphore, rwlock, condition"):
            lock_named("busy", "mutex")


@pytest.mark.usefixtures("crowd")
class TestOfConditionsAndBarriers:
    def test_a_barrier_is_a_kind_of_its_own_and_its_row_is_no_notification(self) -> None:
        stands("import done", A)
        waits("barrier", "import done", B)
        status = one("barrier", "import done")
        assert (status.creator, status.held, status.holders, status.waiters) == (A, 0, (), 1)
        assert [one.called for one in lock_named("import done")] == ["barrier import done"]
        assert shown(kind="barrier") == shown(prefix="import") == [("barrier", "import done")]
        assert shown(kind="condition") == [("condition", "orders")]

    def test_who_was_notified_is_counted_and_named(self) -> None:
        permits("condition", "orders", ["", A, B])
        status = one("condition", "orders")
        assert (status.held, [held.holder for held in status.holders]) == (2, [A, B])
        permits("barrier", "orders", ["", C])
        assert (one("barrier", "orders").held, one("barrier", "orders").creator) == (1, "")

    def test_one_that_has_been_removed_is_shown_while_somebody_waits(self) -> None:
        waits("barrier", "gone", B)
        assert (one("barrier", "gone").creator, one("barrier", "gone").waiters) == ("", 1)

    def test_pages_go_on_by_the_name_that_was_given(self) -> None:
        for name in ("b", "a", "orders"):
            stands(name, A)
        first = locks(kind="barrier", limit=2)
        assert ([one.name for one in first.locks], first.after) == (["a", "b"], "b")
        assert shown(kind="barrier", after="b") == [("barrier", "orders")]
        assert shown()[-2:] == [("barrier", "orders"), ("condition", "orders")]


@pytest.mark.usefixtures("crowd")
class TestPages:
    def test_all_kinds_are_shown_by_name(self) -> None:
        assert shown() == [
            ("lock", "busy"),
            ("semaphore", "busy"),
            ("rwlock", "catalogue"),
            ("lock", "idle"),
            ("semaphore", "idle"),
            ("condition", "orders"),
        ]

    def test_of_one_kind(self) -> None:
        assert shown(kind="semaphore") == [("semaphore", "busy"), ("semaphore", "idle")]

    def test_those_that_are_held(self) -> None:
        assert shown(held=True) == [("lock", "busy"), ("semaphore", "busy"), ("rwlock", "catalogue")]

    def test_those_that_are_waited_for(self) -> None:
        assert shown(waited=True) == [("lock", "busy"), ("semaphore", "busy"), ("condition", "orders")]

    def test_those_that_are_held_and_waited_for(self) -> None:
        waits("lock", "idle", A)
        assert shown(held=True, waited=True) == [("lock", "busy"), ("semaphore", "busy")]

    def test_by_the_beginning_of_the_name_which_is_no_pattern(self) -> None:
        lock("Busy")
        lock("b%")
        lock("b_")
        assert shown(prefix="b", kind="lock") == [("lock", "b%"), ("lock", "b_"), ("lock", "busy")]
        assert shown(prefix="b%", kind="lock") == [("lock", "b%")]
        assert shown(prefix="o", waited=True) == [("condition", "orders")]

    def test_one_page_goes_on_after_the_other_and_misses_no_kind(self) -> None:
        found, after = [], ""
        while page := locks(limit=1, after=after):
            found.append([(one.kind.value, one.name) for one in page.locks])
            after = page.after
            if not after:
                break
        assert [len(one) for one in found] == [2, 1, 2, 1]
        assert [one for page in found for one in page] == shown()

    @pytest.mark.parametrize("wrong", [{"kind": "x"}, {"limit": 0}, {"after": "a\0"}, {"prefix": "x" * 300}])
    def test_what_is_not_allowed_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(BadOption):
            locks(**wrong)

    def test_nothing_is_an_empty_page(self) -> None:
        assert locks(after="zzz").locks == []
        assert locks(kind="condition", held=True).locks == []


def test_the_first_holders_of_many_are_named_and_all_are_counted() -> None:
    permits("semaphore", "wide", [f"web-1/1/t/abc.{number:03}@{number}" for number in range(30)])
    permits("semaphore", "also", [A, B])
    wide, also = {one.name: one for one in locks().locks}["wide"], one("semaphore", "also")
    assert (len(wide.holders), wide.held) == (HOLDERS_ON_PAGE, 30)
    assert len(also.holders) == 2
    assert len(one("semaphore", "wide").holders) == 30


def test_it_takes_as_many_statements_however_many_names_there_are() -> None:
    counts = []
    for many in (1, 20):
        for number in range(many):
            name = f"{many}-{number}"
            lock(name, A)
            permits("semaphore", name, [A, B])
            permits("rwlock", name, [A, B])
            waits("condition", name, C)
            stands(name, C)
        with CaptureQueriesContext(connection) as sent:
            assert len(locks().locks) >= 5 * many
        counts.append(len(sent))
    assert counts[0] == counts[1] <= 12


def test_it_becomes_json() -> None:
    lock("busy", A)
    (found,) = as_data(locks())["locks"]
    assert (found["kind"], found["name"], found["held"]) == ("lock", "busy", 1)
    assert LockKind("lock").called("busy") == "lock busy"


def test_who_has_some_of_what_it_waits_for_is_told_from_who_holds_it_up() -> None:
    permits("rwlock", "catalogue", [A, later(B), later(B), C])
    waits("rwlock", "catalogue", B, count=4)
    waits("semaphore", "catalogue", C, count=2)
    status = one("rwlock", "catalogue")
    assert [(held.holder, held.is_waiting) for held in status.holders] == [
        (A, False),
        (later(B), True),
        (C, False),
    ]
    assert [held.holder for held in status.in_use] == [A, C]
