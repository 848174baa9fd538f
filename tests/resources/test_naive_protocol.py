"""Each fault of the naive protocol: first shown with the naive protocol, then shown to be absent in ours."""

import datetime
import os
import time
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.utils import timezone

from resourcepool import Resource
from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.models import Proxy
from tests.app.rows import busy_for, change, columns, expire, granted, lasts, new, several, steal
from tests.eventually import at_once, eventually
from tests.resources.naive_protocol import DELTA, Clock, Holder, Row, busy_before, documents_table, free_row

pytestmark = pytest.mark.usefixtures("documents_table")
__all__ = ["documents_table"]


def acquired(**criteria: Any) -> Any:
    lease = Proxy.pool.acquire(wait=False, **criteria)
    assert lease is not None
    return lease


class TestALateCloseFreesTheSuccessor:
    def test_theirs(self) -> None:
        free_row()
        clock = Clock()
        late, successor, third = Holder(clock), Holder(clock), Holder(clock)
        late.acquire()
        clock.moved = 2 * DELTA
        assert successor.acquire()
        late.close()
        assert third.acquire()
        assert successor.believes_to_hold
        assert third.believes_to_hold

    def test_ours(self) -> None:
        row = new(Proxy)
        late = acquired()
        expire(row)
        successor = acquired()
        before = columns(row)
        with pytest.raises(LeaseLost):
            late.release()
        assert columns(row) == before
        assert Proxy.pool.acquire(wait=False) is None
        successor.renew()


class TestALateVerdictParksTheSuccessor:
    def test_theirs(self) -> None:
        row, clock = free_row(), Clock()
        late, successor = Holder(clock), Holder(clock)
        late.acquire()
        clock.moved = 2 * DELTA
        assert successor.acquire()
        late.put_away()
        assert busy_before(row) - clock.now() > datetime.timedelta(hours=23)
        assert not successor.keep(), "it was valid, and is taken away from its holder for a day"

    def test_ours(self) -> None:
        row = new(Proxy)
        late = acquired()
        expire(row)
        successor = acquired()
        before = columns(row)
        with pytest.raises(LeaseLost):
            late.quarantine("found bad too late")
        assert columns(row) == before
        successor.renew()


class TestARowThatWasNeverBusyIsNeverFound:
    def test_theirs(self) -> None:
        Row.objects.create(name="new", busy_before=None)
        assert Holder().search() is None

    def test_ours(self) -> None:
        row = new(Proxy)
        assert acquired().pk == row.pk

    def test_ours_knows_no_null(self) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            new(Proxy, busy_before=None)


class TestAClockThatIsAhead:
    """A clock of one host is wrong by three minutes."""

    def test_theirs_takes_what_is_held(self) -> None:
        free_row()
        holder, ahead = Holder(), Holder()
        ahead.clock.moved = datetime.timedelta(minutes=3)
        assert holder.acquire()
        assert ahead.acquire()
        assert holder.believes_to_hold
        assert ahead.believes_to_hold

    def test_ours_does_not_ask_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        holder = acquired()
        at = time.time()
        monkeypatch.setattr(time, "time", lambda: at + 3_600)
        monkeypatch.setattr(timezone, "now", lambda: datetime.datetime.fromtimestamp(at + 3_600, datetime.UTC))
        assert Proxy.pool.acquire(wait=False) is None
        holder.renew()


class TestAClockThatIsBehind:
    def test_theirs_holds_what_is_free_to_everybody_else(self) -> None:
        free_row()
        behind, other = Holder(), Holder()
        behind.clock.moved = -2 * DELTA
        assert behind.acquire()
        assert behind.believes_to_hold
        assert other.acquire()

    def test_ours_does_not_ask_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = new(Proxy)
        at = time.time()
        monkeypatch.setattr(time, "time", lambda: at - 3_600)
        monkeypatch.setattr(timezone, "now", lambda: datetime.datetime.fromtimestamp(at - 3_600, datetime.UTC))
        holder = acquired(ttl=60)
        assert lasts(row, 60)
        assert Proxy.pool.acquire(wait=False) is None
        holder.renew()


class TestTwoGrantsWithinOneSecond:
    """An operator revokes the lease, and the next holder claims the row within the same second."""

    def test_theirs_look_the_same_to_the_first_holder(self) -> None:
        row, clock = free_row(), Clock()
        first, second = Holder(clock), Holder(clock)
        assert first.acquire()
        Row.objects.filter(pk=row.pk).update(busy_before=row.busy_before)
        assert second.acquire()
        assert first.keep()
        assert second.keep()

    def test_ours_have_fences(self) -> None:
        row = new(Proxy)
        first = acquired()
        expire(row)
        second = acquired()
        change(row, busy_before=columns(row)["busy_before"] + datetime.timedelta(0))
        with pytest.raises(LeaseLost):
            first.renew()
        second.renew()


@pytest.mark.only("mysql")
class TestTwoRenewalsWithinOneSecond:
    """By MySQL's own count an UPDATE that changes nothing has changed no row. Django asks for another count,
    but a project that sets ``client_flag`` gets this one."""

    @pytest.fixture
    def counting_changes(self) -> Any:
        own: Any = connections.create_connection("default")
        options = {**own.settings_dict["OPTIONS"], "client_flag": 0}
        own.settings_dict = {**own.settings_dict, "OPTIONS": options}
        yield own
        own.close()

    def test_theirs_look_like_a_loss(self, counting_changes: Any) -> None:
        free_row()
        holder = Holder()
        assert holder.acquire()
        with counting_changes.cursor() as cursor:
            until = holder.row.busy_before.replace(tzinfo=None)
            sql = "UPDATE document_000 SET busy_before = %s WHERE id = %s AND busy_before = %s"
            assert cursor.execute(sql, [until, holder.row.pk, until]) == 0

    def test_ours_count(self, counting_changes: Any) -> None:
        row = new(Proxy)
        grant = granted(row)
        for _ in range(5):
            assert verbs.renew(counting_changes, Proxy, [(row.pk, grant.fence)], 60) == 1


class TestTheHolderIsNotTold:
    def test_theirs_finds_another_resource_in_its_hand(self) -> None:
        taken, _ = free_row("taken"), free_row("another")
        holder = Holder()
        holder.acquire()
        in_use = holder.row
        Row.objects.filter(pk=taken.pk).update(busy_before=DELTA + holder.clock.now() + DELTA)
        holder.turn()
        assert holder.row.pk != in_use.pk, "and whoever fetched the first one goes on with it"

    def test_ours_is_told_three_times(self) -> None:
        """By the event, the callback and the next call."""
        told: list[Any] = []
        row = new(Proxy)
        lease = acquired(on_lost=told.append)
        steal(row)
        with pytest.raises(LeaseLost):
            lease.renew()
        assert lease.lost.is_set()
        eventually(lambda: told == [lease])
        with pytest.raises(LeaseLost):
            lease.ensure_held()

    def test_ours_says_what_it_moved_to(self) -> None:
        changes: list[Any] = []
        several(Proxy, 2)

        class RecordingResource(Resource):
            model = Proxy
            occupation_interval = 0.05

            def is_valid(self) -> bool:
                return True

        kept = RecordingResource(on_change=lambda old, new: changes.append((old, new)))
        kept.start()
        lost = kept.o
        steal(lost)
        eventually(lambda: changes == [(lost, kept.o)])
        kept.terminate()
        kept.join(60)


class TestEverybodyTriesTheFirstRow:
    def test_theirs(self) -> None:
        rows = [free_row(f"row {number}") for number in range(8)]
        found: list[Any] = [Holder().search() for _ in rows]
        assert {row.pk for row in found} == {rows[0].pk}
        assert sum(Holder().lock(row) for row in found) == 1, (
            "the others sleep for two seconds and try the next"
        )

    def test_ours(self) -> None:
        several(Proxy, 8)
        leases = at_once(8, lambda _: acquired())
        assert len({lease.pk for lease in leases}) == 8
        for lease in leases:
            lease.release()

    def test_ours_is_not_the_same_one_every_time(self) -> None:
        several(Proxy, 8)
        first: set[Any] = set()
        for _ in range(40):
            with acquired(strategy="random") as lease:
                first.add(lease.pk)
        assert len(first) > 1


class TestWhoHoldsWhat:
    def test_theirs_is_written_nowhere(self) -> None:
        free_row()
        Holder().acquire()
        assert {field.name for field in Row._meta.get_fields()} == {"id", "name", "busy_before"}

    def test_ours_is_in_the_row(self) -> None:
        new(Proxy)
        acquired()
        (holder,) = Proxy.objects.held().values_list("holder", flat=True)
        assert f"/{os.getpid()}/" in holder


class TestSqlMadeByFormatting:
    EVERYTHING = "x' OR '1' = '1"

    def test_theirs_runs_what_it_is_given(self) -> None:
        free_row("not called x")
        search = "SELECT id FROM document_000 WHERE name = '%s'"
        with connection.cursor() as cursor:
            cursor.execute(search % self.EVERYTHING)
            assert len(cursor.fetchall()) == 1

    def test_ours_looks_for_it(self) -> None:
        new(Proxy, notes="not called x")
        assert Proxy.pool.acquire(wait=False, notes=self.EVERYTHING) is None


class TestOneBadDay:
    """A resource that was found invalid once is gone for a day, even if the checker failed."""

    def test_theirs(self) -> None:
        row = free_row()
        holder = Holder(is_valid=lambda: False)
        holder.acquire()
        assert busy_before(row) - holder.clock.now() > datetime.timedelta(days=1)

    def test_ours_begins_with_minutes_and_a_reason(self) -> None:
        row = new(Proxy)
        acquired().quarantine("is_valid() returned False")
        assert 290 < busy_for(row) < 376
        assert columns(row)["reason"] == "is_valid() returned False"
