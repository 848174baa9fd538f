"""Rows locked by another transaction: bulk changes change all others, and do not wait long."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater
from resourcepool.encryption.rotation import rotate_secrets
from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.models import Proxy
from resourcepool.resources import queryset
from resourcepool.resources.state import Status
from resourcepool.signals import RowEvent
from tests.app.rows import change, columns, granted, new, several
from tests.committed import Statement
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.locking import lock_wait, locked, wait_for_a_second_only
from tests.proxies.import_helpers import Import, import_text
from tests.resources.sent_signals import CHANGES, events

__all__ = ["events", "import_text"]

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite locks the whole database


@pytest.fixture(autouse=True)
def _for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_a_second_only(monkeypatch)


@pytest.fixture
def rows() -> Iterator[list[Any]]:
    """Rows for all these changes; the second is locked."""
    made = several(Proxy, 5)
    for row in made:
        granted(row)
        change(row, status=Status.QUARANTINED, until=DbLater(-1))
    with locked(made[1]):
        yield made


def all_columns() -> dict[Any, Any]:
    return {row["id"]: row for row in Proxy.objects.values()}


class TestOfMany:
    @pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"return_due"}))
    @pytest.mark.parametrize("chunk", [1, 2, 500])
    def test_all_others_are_done_and_it_says_so(
        self, rows: list[Any], events: list[RowEvent], name: str, chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queryset, "CHUNK", chunk)
        before, usual = all_columns(), lock_wait()
        with pytest.raises(RowLocked, match=r"1 locked by another transaction.*; 4 changed") as caught:
            CHANGES[name](Proxy.objects.all())
        assert caught.value.done == 4
        after = all_columns()
        assert after[rows[1].pk] == before[rows[1].pk]
        assert all(after.get(row.pk) != before[row.pk] for row in rows if row != rows[1])
        assert {event.pk for event in events} == {row.pk for row in rows if row != rows[1]}
        assert lock_wait() == usual, "for the statements of others"
        assert localized(caught.value)

    def test_those_that_are_locked_are_waited_for_once(
        self, rows: list[Any], monkeypatch: pytest.MonkeyPatch, statements: list[Statement]
    ) -> None:
        monkeypatch.setattr(queryset, "CHUNK", 1)
        with locked(*rows[3:]), pytest.raises(RowLocked, match=r"3 locked .* 2 changed"):
            Proxy.objects.order_by("pk").drain("sold")
        locking = [
            one.sql for one in statements if one.sql.endswith("FOR UPDATE") and "SELECT 1" not in one.sql
        ]
        assert len(locking) == 2, "one that was free, and the one that was waited for"

    def test_what_comes_free_goes_to_those_who_wait(self, rows: list[Any]) -> None:
        waiter = InBackground(lambda: Proxy.pool.acquire(timeout=20, holder="waits"))
        eventually(in_line)
        with pytest.raises(RowLocked):
            Proxy.objects.revoke("stuck")
        assert waiter.result().holder == "waits"

    def test_what_is_due_is_returned_when_it_is_not_locked_any_more(self) -> None:
        due = {"in_service": False, "status": Status.OUT_OF_SERVICE, "until": "2000-01-01T00:00:00Z"}
        now, later = new(Proxy, **due), new(Proxy, **due)
        with locked(later):
            assert Proxy.objects.return_due() == 1
        assert columns(now)["in_service"]
        assert Proxy.objects.return_due() == 1

    def test_those_that_are_free_are_deleted(self, rows: list[Any]) -> None:
        free = several(Proxy, 2)
        with pytest.raises(RowLocked), locked(free[0]):
            Proxy.objects.filter(pk__in=[row.pk for row in free]).delete()
        assert not Proxy.objects.filter(pk=free[1].pk).exists()
        assert columns(free[0])["in_service"]


class TestOfOne:
    @pytest.mark.parametrize(
        "use", [lambda row: row.save(), lambda row: row.save(update_fields=["notes"]), lambda row: row.delete()]
    )
    def test_nothing_is_done_and_nobody_waits_long(self, use: Any) -> None:
        row = new(Proxy)
        before = columns(row)
        with locked(row), pytest.raises(RowLocked, match="a row is locked by another transaction"):
            row.notes = "moved"
            use(row)
        assert columns(row) == before
        use(row)
        assert all_columns().get(row.pk) != before

    def test_new_ones_are_saved(self, rows: list[Any]) -> None:
        assert Proxy.objects.create(host="c.example", port=80).pk in all_columns()


def test_secrets_are_encrypted_anew_but_those_that_are_locked() -> None:
    rows = [new(Proxy, password="s3cret") for _ in range(4)]
    before = sealed()
    with locked(rows[0]), pytest.raises(RowLocked):
        list(rotate_secrets())
    after = sealed()
    assert [after[row.pk] == before[row.pk] for row in rows] == [True, False, False, False]
    assert [count for _label, count in rotate_secrets()] == [4]


def test_an_import_is_stored_as_a_whole_or_not_at_all(import_text: Import) -> None:
    import_text("a.example:80\nb.example:80")
    there = all_columns()
    with locked(Proxy.objects.get(host="a.example")), pytest.raises(RowLocked):
        import_text("host,port,notes\nb.example,80,new\na.example,80,new\nc.example,80,new", update=True)
    assert all_columns() == there


def sealed() -> dict[Any, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, password FROM resourcepool_proxy")
        return dict(cursor.fetchall())
