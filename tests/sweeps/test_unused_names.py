"""The rows of unused lock names are removed, and created again when the names are used."""

from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect import DbLater
from resourcepool.locks import Hold, Lock, Semaphore
from resourcepool.locks.base import UNUSED_AFTER
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Barrier, ConditionWaiter, RWLockPermit, SemaphorePermit, Ticket
from resourcepool.sweeps import pruning
from resourcepool.sweeps.pruning import remove_unused_names
from resourcepool.sweeps.sweep import prune
from resourcepool.waiting.models import line_name
from tests.app.rows import change, new
from tests.committed import Statement
from tests.eventually import InBackground, eventually
from tests.locks.conftest import _nothing_held_from_before  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("transactional_db")

LONG_AGO, LATELY = DbLater(-UNUSED_AFTER - 60), DbLater(-UNUSED_AFTER + 60)
KINDS = [LockRow, SemaphorePermit, RWLockPermit, ConditionWaiter, Barrier]


def rows_of(model: Any, name: str = "seats", count: int = 3, **fields: Any) -> list[Any]:
    """Create the rows of a name that has been unused for long."""
    fields = {"busy_before": LONG_AGO, **fields}
    if model is LockRow:
        return [LockRow.objects.create(name=name, **fields)]
    return [model.objects.create(key=f"{name}#{number}", name=name, **fields) for number in range(count)]


def waiting(model: Any, name: str = "seats", seconds: float = 30) -> Ticket:
    made: Ticket = new(Ticket, busy_before=DbLater(seconds), holder="stranger", selector=name)
    change(made, pool=line_name(model, name))
    return made


def names(model: Any) -> set[str]:
    return {model.name_of(pk) for pk in model.objects.values_list("pk", flat=True)}


@pytest.mark.parametrize("model", KINDS)
class TestOfAnyKind:
    def test_removes_names_unused_for_a_day(self, model: Any) -> None:
        old, lately = rows_of(model), rows_of(model, "lately", busy_before=LATELY)
        held = rows_of(model, "held", busy_before=DbLater(60), holder="me")
        assert remove_unused_names() == len(old)
        assert names(model) == {"lately", "held"}
        assert model.objects.count() == len(lately) + len(held)
        assert remove_unused_names() == 0

    def test_keeps_names_with_waiters(self, model: Any) -> None:
        rows_of(model)
        ticket = waiting(model)
        assert remove_unused_names() == 0
        change(ticket, busy_before=DbLater(-1))
        assert remove_unused_names() > 0

    def test_ignores_waiters_for_another_kind_of_the_name(self, model: Any) -> None:
        rows_of(model)
        for other in KINDS:
            if other is not model:
                waiting(other)
        waiting(model, "other")
        assert remove_unused_names() > 0

    def test_removes_many_names_in_batches(self, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pruning, "BATCH", 5)
        for number in range(7):
            rows_of(model, f"old {number}")
            rows_of(model, f"used {number}", busy_before=LATELY)
        there = model.objects.count()
        assert remove_unused_names() == there // 2
        assert names(model) == {f"used {number}" for number in range(7)}

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="it has no locks of rows")
    def test_keeps_locked_rows(self, model: Any, other: BaseDatabaseWrapper) -> None:
        *_, last = rows_of(model)
        rows_of(model, "other")
        other.set_autocommit(False)
        with other.cursor() as cursor:
            table, pk = (other.ops.quote_name(one) for one in (model._meta.db_table, model._meta.pk.column))
            cursor.execute(f"SELECT 1 FROM {table} WHERE {pk} = %s FOR UPDATE", [last.pk])
            remove_unused_names()
        other.rollback()
        other.set_autocommit(True)
        assert model.objects.filter(pk=last.pk).exists()
        if model in (SemaphorePermit, RWLockPermit):
            assert model.objects.filter(name="seats").count() == 3  # all of a name, or none


@pytest.mark.parametrize("model", [SemaphorePermit, RWLockPermit])
class TestPermits:
    def test_removes_all_permits_of_a_name_or_none(self, model: Any) -> None:
        first, *_ = rows_of(model)
        change(first, busy_before=LATELY)
        assert remove_unused_names() == 0
        change(first, busy_before=DbLater(60), holder="me")
        assert remove_unused_names() == 0

    def test_a_permit_used_meanwhile_keeps_its_name(self, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        first, *_ = rows_of(model)
        found = pruning._unused_names

        def find(*args: Any) -> Any:
            names = found(*args)
            change(first, busy_before=DbLater(60), holder="me")
            return names

        monkeypatch.setattr(pruning, "_unused_names", find)
        assert remove_unused_names() == 0

    def test_keeps_resized_names(self, model: Any) -> None:
        first, *_ = rows_of(model)
        change(first, in_service=False)
        assert remove_unused_names() == 0


def test_removes_rows_that_are_not_permits_separately() -> None:
    for key, moment in (("a#upgrade", LONG_AGO), ("b#upgrade", LATELY)):
        RWLockPermit.objects.create(key=key, name="", busy_before=moment)
    assert remove_unused_names() == 1
    assert RWLockPermit.objects.get().pk == "b#upgrade"


def test_a_chosen_size_survives_the_sweep() -> None:
    for chosen in (1, 3, 5, 0):
        Semaphore("seats", 3).resize(chosen)
        SemaphorePermit.objects.update(busy_before=LONG_AGO)
        remove_unused_names()
        assert Semaphore("seats", 3).value == chosen


@pytest.mark.parametrize("make", [Lock, lambda name: Semaphore(name, 2)], ids=["Lock", "Semaphore"])
class TestANameThatIsUsedAgain:
    def test_has_higher_fences(self, make: Any) -> None:
        with make("seats") as before:
            pass
        self._sweep()
        with make("seats") as after:
            assert after.fence > before.fence

    def test_is_available_without_waiting(self, make: Any) -> None:
        with make("seats"):
            InBackground(lambda: make("seats").acquire(blocking=False)).result()
        self._sweep()
        assert make("seats").acquire(blocking=False) is not None

    def test_by_a_waiter_that_arrives_during_the_sweep(
        self, make: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with make("seats") as before:
            pass
        is_awaited, waits = pruning._awaited, list[InBackground]()

        def look(those: Any, names: Any) -> Any:
            found = is_awaited(those, names)
            if names and not waits:
                waits.append(InBackground(make("seats").acquire))
                if connection.vendor != "sqlite":  # which allows no concurrent writes
                    eventually(Ticket.objects.filter(pool__endswith=":seats").exists)
            return found

        monkeypatch.setattr(pruning, "_awaited", look)
        self._sweep()
        hold = waits[0].result()
        assert hold.is_held
        assert hold.fence > before.fence

    def test_is_not_removed_just_after_its_creation(self, make: Any) -> None:
        one = make("seats")
        one.refuse_impossible(connection, one._request(0, Hold(one, "seats")))
        assert remove_unused_names() == 0

    def _sweep(self) -> None:
        for model in (LockRow, SemaphorePermit):
            model.objects.update(busy_before=LONG_AGO)
        assert remove_unused_names() > 0


def test_the_prune_job_removes_unused_names() -> None:
    rows_of(LockRow)
    assert "1" in (prune() or "")
    assert not LockRow.objects.filter(name="seats").exists()


def test_many_names_need_few_statements(statements: list[Statement]) -> None:
    for number in range(50):
        rows_of(SemaphorePermit, f"old {number}")
    statements.clear()
    remove_unused_names()
    words = [one.sql.split()[0] for one in statements]
    assert words.count("DELETE") == 1
    assert words.count("SELECT") <= 12
