"""A change of many rows skips locked ones; with real locks in test_locked_rows.py."""

from collections.abc import Sequence

import pytest

from resourcepool.db import transactions as short_transactions
from resourcepool.db.row_locks import row_locked
from resourcepool.db.transactions import change_skipping_locked
from resourcepool.exceptions import RowLocked
from resourcepool.models import Proxy
from tests.app.rows import several


class Rows:
    """Nine rows in three chunks, of which some are locked; notes what was changed, and how often one was waited for."""

    def __init__(self, locked: set[int]) -> None:
        self.pks = [row.pk for row in several(Proxy, 9)]
        self.locked = {self.pks[number] for number in locked}
        self.changed: list[int] = []
        self.waited = 0

    def change(self, pks: Sequence[int], skips: bool) -> int:
        if self.locked & {*pks}:
            self.waited += not skips
            raise row_locked("default")
        self.changed += pks
        return len(pks)

    def change_all(self) -> int:
        chunks = [self.pks[start : start + 3] for start in (0, 3, 6)]
        return change_skipping_locked("default", Proxy, chunks, self.change)


@pytest.fixture
def rows(request: pytest.FixtureRequest, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Rows:
    rows = Rows(request.param)
    monkeypatch.setattr(short_transactions, "unlocked", lambda _connection, _model, pks: {*pks} - rows.locked)
    return rows


@pytest.mark.parametrize("rows", [set()], indirect=True)
def test_where_nothing_is_locked_everything_is_changed(rows: Rows) -> None:
    assert rows.change_all() == 9
    assert rows.changed == rows.pks


@pytest.mark.parametrize("rows", [{0}, {4}, {8}, {0, 4, 8}, {3, 4, 5}, {*range(9)}], indirect=True, ids=str)
def test_the_others_are_changed_and_only_one_wait_is_made_whatever_is_locked(rows: Rows) -> None:
    with pytest.raises(RowLocked) as raised:
        rows.change_all()
    assert rows.changed == [pk for pk in rows.pks if pk not in rows.locked]
    assert raised.value.done == len(rows.changed)
    assert rows.waited == 1
