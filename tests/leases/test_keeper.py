"""The keeper renews this process's leases, and reports losses to their holders."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, connection

from resourcepool.db import background
from resourcepool.db.background import OwnConnections
from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from tests.app.models import Bare, Device
from tests.app.rows import busy_for, change, columns, expire, hold, lasts, new, several, steal
from tests.committed import Clock, Statement
from tests.eventually import eventually
from tests.leases.outage import Outage, renewed


def renewals(statements: list[Statement], model: Any) -> list[str]:
    """Return the keeper's renewals of this model's rows."""
    table = f"UPDATE {connection.ops.quote_name(model._meta.db_table)} "
    return [
        one.sql
        for one in statements
        if one.thread == "resourcepool-background-default" and one.sql.startswith(table)
    ]


class TestBeat:
    def test_renews_everything_of_one_table_in_one_statement(
        self, process_clock: Clock, statements: list[Statement]
    ) -> None:
        bare = [hold(row, ttl=60) for row in several(Bare, 40)]
        devices = [hold(row, ttl=60) for row in several(Device, 3)]
        for model in (Bare, Device):
            model._base_manager.update(busy_before=DbLater(30))
        process_clock.advance(25)
        eventually(renewed(bare + devices, process_clock))
        assert len(renewals(statements, Bare)) == len(renewals(statements, Device)) == 1
        for lease in (*bare, *devices):
            assert busy_for(lease.model._base_manager.get(pk=lease.pk)) > 30

    def test_comes_at_a_third_of_the_ttl_not_earlier(
        self, process_clock: Clock, statements: list[Statement]
    ) -> None:
        lease = hold(new(Bare), ttl=60)
        assert lease._trust.due_at == pytest.approx(process_clock() + 20, abs=1)
        process_clock.advance(14)
        another = hold(new(Bare), ttl=3)  # makes the keeper look
        eventually(lambda: another._trust.due_at > process_clock() + 0.9)
        assert lease._trust.due_at < process_clock() + 6.1
        assert len(renewals(statements, Bare)) <= 2

    def test_takes_along_what_is_due_soon(self, process_clock: Clock, statements: list[Statement]) -> None:
        early = hold(new(Bare), ttl=60)
        process_clock.ahead += 4
        late = hold(new(Bare), ttl=60)
        process_clock.advance(16.5)
        eventually(renewed([early, late], process_clock))
        assert len(renewals(statements, Bare)) == 1

    def test_splits_what_is_too_much_for_one_statement(
        self, process_clock: Clock, statements: list[Statement], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verbs, "BATCH", 10)
        leases = [hold(row, ttl=60) for row in several(Bare, 25)]
        process_clock.advance(25)
        eventually(renewed(leases, process_clock))
        assert len(renewals(statements, Bare)) == 3

    def test_renews_for_each_ones_own_ttl(self, process_clock: Clock) -> None:
        short, long = hold(new(Bare), ttl=30), hold(new(Bare), ttl=600)
        change(Bare.objects.get(pk=long.pk), busy_before=DbLater(400))
        process_clock.advance(11)
        eventually(renewed([short], process_clock))
        assert busy_for(Bare.objects.get(pk=short.pk)) <= 30
        short.release()
        process_clock.advance(190)
        eventually(renewed([long], process_clock))
        assert lasts(Bare.objects.get(pk=long.pk), 600)

    def test_renews_in_one_statement_what_lasts_differently(
        self, process_clock: Clock, statements: list[Statement]
    ) -> None:
        """With ``max_hold`` near the ttl each lease has another end; so has each one of a ttl of its own."""
        leases = []
        for number in range(20):
            leases.append(hold(new(Bare), ttl=60, max_hold=70))
            leases.append(hold(new(Bare), ttl=60 + number))
            process_clock.ahead += 0.1
        Bare.objects.update(busy_before=DbLater(30))
        process_clock.stop()
        process_clock.advance(30)
        eventually(renewed(leases, process_clock))
        assert len(renewals(statements, Bare)) == 1
        written = dict(Bare.objects.values_list("pk", "busy_before"))
        renewed_at = [
            written[lease.pk] - timedelta(seconds=lease._trust.next_ttl(process_clock()))
            for lease in leases
            if lease._terms.max_hold is None
        ]
        assert max(renewed_at) - min(renewed_at) < timedelta(seconds=0.1), "each for its own ttl"
        for lease in leases:
            assert lease.remaining < lease._trust.next_ttl(process_clock()), "trusted only for what was written"

    def test_does_not_renew_what_was_released(self, process_clock: Clock, statements: list[Statement]) -> None:
        released, kept = hold(new(Bare), ttl=60), hold(new(Bare), ttl=60)
        released.release()
        process_clock.advance(25)
        eventually(renewed([kept], process_clock))
        assert " IN (" not in renewals(statements, Bare)[0]

    def test_does_not_renew_beyond_max_hold(self, process_clock: Clock) -> None:
        lease = hold(new(Bare), ttl=60, max_hold=70)
        process_clock.advance(30)
        eventually(renewed([lease], process_clock))
        process_clock.advance(39)
        assert lease.lost.wait(20)
        assert busy_for(Bare.objects.get()) <= 60


class TestLoss:
    def test_tells_exactly_those_that_were_stolen(self, process_clock: Clock) -> None:
        leases = [hold(row, ttl=60) for row in several(Bare, 6)]
        for number in (1, 4):
            steal(Bare.objects.get(pk=leases[number].pk))
        process_clock.advance(25)
        for number in (1, 4):
            assert leases[number].lost.wait(20)
        kept = [leases[number] for number in (0, 2, 3, 5)]
        eventually(renewed(kept, process_clock))
        assert not any(lease.lost.is_set() for lease in kept)

    def test_never_takes_back_what_has_expired(self, process_clock: Clock) -> None:
        row = new(Bare)
        lease = hold(row, ttl=60)
        expire(row)
        before = columns(row)
        process_clock.advance(25)
        assert lease.lost.wait(20)
        assert columns(row) == before

    def test_goes_on_while_somebodys_on_lost_does_not_return(self, process_clock: Clock) -> None:
        hangs, told = threading.Event(), threading.Event()

        def wait(_: Any) -> None:
            told.set()
            hangs.wait(20)

        row = new(Bare)
        lost, kept = hold(row, ttl=60, on_lost=wait), hold(new(Bare), ttl=60)
        until_then = hold(new(Bare), ttl=60, max_hold=40)
        steal(row)
        process_clock.advance(25)
        assert told.wait(20)
        eventually(renewed([kept], process_clock))
        process_clock.advance(25)
        eventually(renewed([kept], process_clock))
        assert until_then.lost.wait(20)
        assert lost.lost.is_set()
        hangs.set()


class TestTrouble:
    def test_is_sat_out_until_the_database_is_back(self, process_clock: Clock, outage: Outage) -> None:
        lease = hold(new(Bare), ttl=60)
        outage.error = DatabaseUnavailable("gone")
        process_clock.advance(25)
        eventually(lambda: outage.calls > 2)
        assert lease.is_held
        outage.error = None
        eventually(renewed([lease], process_clock))

    def test_that_outlasts_the_trust_is_a_loss(self, process_clock: Clock, outage: Outage) -> None:
        lease = hold(new(Bare), ttl=60)
        outage.error = DatabaseUnavailable("gone")
        process_clock.advance(57)
        assert not lease.lost.wait(0.1)
        process_clock.advance(1.1)
        assert lease.lost.wait(20)

    def test_is_warned_of_once(
        self, process_clock: Clock, outage: Outage, caplog: pytest.LogCaptureFixture
    ) -> None:
        hold(new(Bare), ttl=60)
        outage.error = DatabaseUnavailable("the server is gone")
        process_clock.advance(25)
        eventually(lambda: outage.calls > 3)
        assert caplog.text.count("the server is gone; 1 leases not renewed yet") == 1

    def test_does_not_delay_the_news_while_a_statement_hangs(
        self, process_clock: Clock, outage: Outage
    ) -> None:
        """Nobody knows when the statement returns; the trust window closes all the same."""
        lease = hold(new(Bare), ttl=60)
        with outage.hanging():
            process_clock.advance(25)
            eventually(lambda: outage.calls)
            process_clock.advance(34)
            assert lease.lost.wait(20)

    def test_of_any_other_kind_does_not_end_the_keeper(
        self, process_clock: Clock, outage: Outage, caplog: pytest.LogCaptureFixture
    ) -> None:
        lease = hold(new(Bare), ttl=60)
        outage.error = ProgrammingError("nobody thought of this")
        process_clock.advance(25)
        eventually(lambda: outage.calls > 1)
        assert "nobody thought of this" in caplog.text
        outage.error = None
        eventually(renewed([lease], process_clock))
        assert keeper.is_alive()

    def test_with_one_table_does_not_cost_the_leases_on_another(
        self, process_clock: Clock, outage: Outage
    ) -> None:
        broken, works = hold(new(Bare), ttl=60), hold(new(Device), ttl=60)
        outage.error, outage.only = ProgrammingError("this table is broken"), Bare
        process_clock.advance(25)
        eventually(renewed([works], process_clock))
        assert broken._trust.due_at < process_clock()


class TestTheEnd:
    def test_releases_all_rows_of_one_table_in_one_statement_each_for_its_own_cool_down(
        self, statements: list[Statement]
    ) -> None:
        leases = [hold(row, cooldown=10 * number) for number, row in enumerate(several(Bare, 20))]
        statements.clear()
        shutdown.release_everything(leases)
        assert len([one for one in statements if one.sql.startswith("UPDATE")]) == 1
        for number, lease in enumerate(leases):
            assert lasts(Bare.objects.get(pk=lease.pk), 10 * number)


def test_what_its_holder_renews_is_only_watched(process_clock: Clock) -> None:
    watched, kept = hold(new(Bare), ttl=60, is_renewed_by_holder=True), hold(new(Bare), ttl=60)
    process_clock.advance(25)
    eventually(renewed([kept], process_clock))
    assert watched._trust.due_at < process_clock()
    process_clock.advance(36)
    assert watched.lost.wait(20)


class TestWhatOneLeaseRaises:
    """Nothing that is called on behalf of one lease costs another one its renewal or its news."""

    @pytest.mark.usefixtures("receivers_that_exit")
    def test_when_it_is_found_stolen(self, process_clock: Clock) -> None:
        called: list[Any] = []
        stolen = [hold(row, ttl=60, on_lost=called.append) for row in several(Bare, 2)]
        kept = hold(new(Device), ttl=60)
        for lease in stolen:
            steal(Bare.objects.get(pk=lease.pk))
        process_clock.advance(25)
        eventually(renewed([kept], process_clock))
        eventually(lambda: set(called) == set(stolen))
        assert keeper.is_alive()

    @pytest.mark.usefixtures("receivers_that_exit")
    def test_when_it_is_over(self, process_clock: Clock) -> None:
        called: list[Any] = []
        over = [hold(row, ttl=60, max_hold=40, on_lost=called.append) for row in several(Bare, 2)]
        process_clock.advance(39)
        eventually(lambda: set(called) == set(over))
        assert keeper.is_alive()

    @pytest.mark.usefixtures("receivers_that_exit")
    def test_when_it_is_reported_as_leaked(self, process_clock: Clock) -> None:
        leases = [hold(row, ttl=60, leak_after=10) for row in several(Bare, 2)]
        process_clock.advance(25)
        eventually(renewed(leases, process_clock))
        assert keeper.is_alive()

    @pytest.mark.usefixtures("receivers_that_exit")
    def test_when_it_is_released_at_the_end(self) -> None:
        leases = [hold(row) for row in (*several(Bare, 2), new(Device))]
        shutdown.release_everything(leases)
        assert keeper.leases() == []


class TestConnections:
    def test_are_closed_when_there_is_nothing_left_to_keep(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = threading.Event()
        close = OwnConnections.close
        monkeypatch.setattr(OwnConnections, "close", lambda own: (close(own), closed.set()))
        lease = hold(new(Bare), ttl=60)
        monkeypatch.setattr(background, "IDLE", 0.05)
        process_clock.advance(25)
        eventually(renewed([lease], process_clock))
        assert not closed.is_set()
        lease.release()
        process_clock.advance(25)
        assert closed.wait(20)
        again = hold(new(Bare), ttl=60)
        process_clock.advance(25)
        eventually(renewed([again], process_clock))


def test_leases_that_come_and_go_leave_nothing_behind() -> None:
    for row in several(Proxy, 3):
        with hold(row):
            pass
    assert keeper.leases() == []
    assert keeper.is_alive()
