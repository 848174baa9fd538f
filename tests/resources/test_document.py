"""Each hole that R0 finds in document 000: its way fails, and ours does not."""

import datetime
import time
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from resourcepool import Resource
from resourcepool.exceptions import LeaseLost
from resourcepool.models import Proxy
from tests.app.models import DocumentRow
from tests.app.rows import busy_for, columns, expire, granted, new, several, steal
from tests.eventually import at_once, eventually
from tests.resources.document import DocumentHolder, document_row, is_free, let_pass

HOUR = datetime.timedelta(hours=1)


class Crawler(Resource):
    """Ours, as a user would write it."""

    model = Proxy
    occupation_delta = 60
    occupation_interval = 0.01
    acquire_timeout = 0.1

    def is_valid(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_document_rows() -> Any:
    yield
    DocumentRow.objects.all().delete()


class TestClosingLate:
    def test_frees_the_successors_lease_in_the_document(self) -> None:
        row, late, successor = document_row(), DocumentHolder(), DocumentHolder()
        assert late.acquire()
        let_pass(row)
        assert successor.acquire()
        late.close()
        assert is_free(row), "a third worker gets what the successor is using"

    def test_does_not_touch_it_in_ours(self) -> None:
        proxy, late = new(Proxy), Crawler()
        steal(proxy, "successor")
        before = columns(proxy)
        late.close()
        assert columns(proxy) == before


class TestPuttingAwayLate:
    def test_parks_the_successors_lease_in_the_document(self) -> None:
        row, late, successor = document_row(), DocumentHolder(), DocumentHolder()
        late.acquire()
        let_pass(row)
        successor.acquire()
        late.put_away()
        assert not successor.keep(), "the successor has lost what it rightly held"
        row.refresh_from_db()
        assert row.busy_before > timezone.now() + 20 * HOUR

    def test_does_not_touch_it_in_ours(self) -> None:
        proxy, late = new(Proxy), Crawler()
        successor = steal(proxy, "successor")
        before = columns(proxy)
        late._put_away()
        assert columns(proxy) == before
        assert columns(proxy)["fence"] == successor.fence


class TestARowThatWasNeverBusy:
    def test_is_never_found_in_the_document(self) -> None:
        document_row(busy_before=None)
        assert DocumentHolder().search() is None

    def test_is_found_in_ours_and_cannot_be_unset(self) -> None:
        proxy = new(Proxy)
        assert Crawler().o == proxy
        with pytest.raises(IntegrityError), transaction.atomic():
            Proxy.objects.update(busy_before=None)


class TestAClockThatIsWrong:
    def test_gives_one_row_to_two_in_the_document(self) -> None:
        document_row()
        right, ahead = DocumentHolder(), DocumentHolder(skew=HOUR)
        assert right.acquire()
        assert ahead.acquire()

    @pytest.mark.parametrize("skew", [HOUR, -HOUR])
    def test_does_not_matter_in_ours(self, skew: datetime.timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
        proxy, holder = new(Proxy), Crawler()
        now, clock = timezone.now, time.time
        monkeypatch.setattr(timezone, "now", lambda: now() + skew)
        monkeypatch.setattr(time, "time", lambda: clock() + skew.total_seconds())
        assert Proxy.pool.acquire(wait=False) is None
        holder.keep_occupation()
        assert 59 < busy_for(proxy) <= 60
        holder.close()


class TestTwoRenewalsInOneSecond:
    def test_look_like_a_loss_in_the_document(self, monkeypatch: pytest.MonkeyPatch) -> None:
        document_row()
        holder = DocumentHolder()
        second = holder.now()
        monkeypatch.setattr(holder, "now", lambda: second)
        assert holder.acquire()
        assert not holder.keep()

    def test_are_two_renewals_in_ours(self) -> None:
        new(Proxy)
        holder = Crawler()
        for _ in range(20):
            holder.keep_occupation()
        holder.ensure_held()


class TestEqualMoments:
    def test_let_a_late_holder_take_over_its_successors_row_in_the_document(self) -> None:
        row, late, successor = document_row(), DocumentHolder(), DocumentHolder()
        late.acquire()
        mine = late.row.busy_before
        let_pass(row)
        successor.acquire()
        DocumentRow.objects.update(busy_before=mine)  # equal deltas, clocks a little apart: the same second
        late._skew = datetime.timedelta(seconds=5)
        assert late.keep(), "two believe that they hold it"

    def test_do_not_in_ours(self) -> None:
        proxy, late = new(Proxy), Crawler()
        mine = columns(proxy)["busy_before"]
        steal(proxy, "successor")
        Proxy.objects.update(busy_before=mine)
        with pytest.raises(LeaseLost):
            late.keep_occupation()
        assert columns(proxy)["holder"] == "successor"


class TestManyWhoStartAtOnce:
    COUNT = 6

    def test_all_want_the_first_row_and_all_but_one_lose_in_the_document(self) -> None:
        for _ in range(self.COUNT):
            document_row()
        holders = [DocumentHolder() for _ in range(self.COUNT)]
        found = [holder.search() for holder in holders]
        assert sum(holder.lock(row) for holder, row in zip(holders, found, strict=True)) == 1

    def test_all_get_one_at_once_in_ours(self) -> None:
        several(Proxy, self.COUNT)
        leases = at_once(self.COUNT, lambda _: Proxy.pool.acquire(wait=False))
        assert len({lease.pk for lease in leases}) == self.COUNT


class TestAResourceThatChangedUnderItsHolder:
    def test_is_not_mentioned_in_the_document(self) -> None:
        row, holder = document_row(), DocumentHolder()
        document_row()
        holder.acquire()
        let_pass(row)
        DocumentHolder().acquire()
        assert not holder.keep()
        holder.acquire()
        assert holder.row.pk != row.pk  # and whoever uses it has not been told

    def test_is_told_in_ours(self) -> None:
        changes: list[Any] = []
        first, second = several(Proxy, 2)
        holder = Crawler(on_change=lambda old, new: changes.append((old, new)))
        before = holder.o
        lease = holder.lease
        holder.start()
        steal(before)
        eventually(lambda: changes)
        assert changes == [(before, holder.o)]
        assert {before, holder.o} == {first, second}
        assert lease.lost.is_set()
        with pytest.raises(LeaseLost):
            lease.ensure_held()
        holder.terminate()
        holder.join(5)


class TestTextFromOutside:
    EVIL = "x'); DROP TABLE resourcepool_proxy; -- %s %(a)s \" ` \\"

    def test_is_never_part_of_a_statement(self) -> None:
        """The document builds its SQL by formatting strings."""
        proxy = new(Proxy)
        assert Proxy.pool.acquire(wait=False, username="' OR '1'='1") is None
        lease = Proxy.pool.acquire(holder=self.EVIL)
        assert columns(proxy)["holder"] == self.EVIL
        assert Proxy.objects.held_by(self.EVIL).get() == proxy
        lease.quarantine(self.EVIL)
        assert columns(proxy)["reason"] == self.EVIL
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM resourcepool_proxy")
            assert cursor.fetchone() == (1,)


class TestWhoHoldsWhat:
    def test_is_in_the_row(self) -> None:
        proxy = new(Proxy)
        holder = Crawler()
        assert columns(proxy)["holder"] == holder.lease.holder
        assert Proxy.objects.held_by(holder.lease.holder).get() == proxy


class TestADeadHolder:
    def test_blocks_its_resource_until_it_expires_and_no_longer(self) -> None:
        """What the document got right (R0.2): no busy bit that stays set for ever."""
        proxy = new(Proxy)
        granted(proxy, "dead")
        assert Proxy.pool.acquire(wait=False) is None
        expire(proxy)
        assert Crawler().lease.fence == 2
