"""What is done with resources that are checked, and that no lease of anybody else's is ever touched."""

import threading
from typing import Any

import pytest

from resourcepool.dialect import DbLater
from resourcepool.exceptions import BadOption, CheckerBroken, DatabaseUnavailable, LeaseLost
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources.checking import check as checking
from resourcepool.resources.checking.check import Wishes, check
from resourcepool.resources.checking.checker import Finding
from resourcepool.resources.checking.crew import MOST_WORDS
from resourcepool.resources.checking.due import due
from resourcepool.resources.checking.lease import CheckLease, take
from resourcepool.resources.checking.outcome import Checked, Done, Tally
from resourcepool.resources.state import Status, Verdict
from resourcepool.signals import Fact, What
from tests.app.rows import busy_for, change, columns, hold, new, several
from tests.eventually import InBackground, eventually
from tests.resources.checking.scripted import BAD, GOOD, UNKNOWN, Scripted
from tests.resources.waiters import ticket

pytestmark = pytest.mark.usefixtures("scripted")


def checked(*rows: Any, **wishes: Any) -> dict[Any, Checked]:
    found: list[Checked] = []
    check(Proxy, [row.pk for row in rows] or None, wishes=Wishes(**wishes), tell=found.append)
    assert not keeper.kept(), "every lease was given back"
    return {one.pk: one for one in found}


def parked(reason: str = "check: refused the connection", **fields: Any) -> Any:
    away = {"status": Status.QUARANTINED, "reason": reason, "until": DbLater(1_000), "strikes": 3}
    return new(Proxy, busy_before=DbLater(1_000), fence=7, **{**away, **fields})


class TestFree:
    def test_a_good_one_is_free_again_and_its_verdict_is_kept(self) -> None:
        row = new(Proxy)
        assert checked()[row.pk] == Checked(row.pk, str(row), Verdict.OK, 0.1, "", Done.NOTHING)
        now = columns(row)
        assert (now["verdict"], now["latency"], now["holder"]) == ("ok", 0.1, "")
        assert now["checked_at"] is not None
        assert busy_for(row) <= 0

    def test_a_bad_one_is_quarantined_longer_each_time(self) -> None:
        row = new(Proxy)
        Scripted.finds = {row.pk: BAD}
        assert checked()[row.pk].done is Done.QUARANTINED
        now = columns(row)
        assert (now["status"], now["reason"], now["strikes"]) == (
            "quarantined",
            "check: refused the connection",
            1,
        )
        assert 290 < busy_for(row) < 380
        checked()
        assert columns(row)["strikes"] == 2
        assert busy_for(row) > 590

    def test_one_that_nobody_can_say_anything_about_stays_where_it_is(self) -> None:
        row = new(Proxy)
        Scripted.finds = {row.pk: UNKNOWN}
        assert checked()[row.pk].done is Done.NOTHING
        now = columns(row)
        assert (now["verdict"], now["status"], now["latency"]) == ("unknown", "in_service", None)
        assert busy_for(row) <= 0

    def test_no_cool_down_follows(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "COOLDOWN": 50}
        row = new(Proxy)
        checked()
        assert busy_for(row) <= 0

    def test_the_longest_hold_of_the_pool_is_not_for_checks(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "MAX_HOLD": 0.1, "LEAK_AFTER": 0.001}
        row = new(Proxy)
        (candidate,) = due(Proxy, [row.pk], every_quarantine=False, unless_within=0)
        lease: Any = take(Proxy, candidate)
        assert lease.remaining > 50
        assert lease.terms.leak_after is None
        lease.release()


class TestLeftAlone:
    def test_what_somebody_holds(self) -> None:
        row = new(Proxy)
        lease = hold(row)
        found: list[Checked] = []
        check(Proxy, [row.pk], tell=found.append)
        assert [one.done for one in found] == [Done.SKIPPED]
        lease.renew()
        assert columns(row)["checked_at"] is None

    def test_what_is_out_of_service_or_cools_down(self) -> None:
        rows = [new(Proxy, in_service=False), new(Proxy, busy_before=DbLater(50))]
        before = [columns(row) for row in rows]
        assert {one.done for one in checked(*rows).values()} == {Done.SKIPPED}
        assert [columns(row) for row in rows] == before

    def test_what_is_free_while_somebody_stands_in_line(self) -> None:
        row = new(Proxy)
        ticket(Proxy)
        assert checked()[row.pk].done is Done.SKIPPED

    def test_what_was_checked_lately(self) -> None:
        late, early, never = new(Proxy), new(Proxy), new(Proxy)
        change(late, checked_at=DbLater(-10))
        change(early, checked_at=DbLater(-500))
        assert set(checked(unless_within=300)) == {early.pk, never.pk}

    def test_what_somebody_was_faster_to_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row, held = new(Proxy), []

        def claimed_meanwhile(*args: Any) -> Any:
            held.append(hold(row))
            return take(*args)

        monkeypatch.setattr(checking, "take", claimed_meanwhile)
        found: list[Checked] = []
        check(Proxy, tell=found.append)
        assert [one.done for one in found] == [Done.SKIPPED]
        held[0].renew()


class TestInQuarantine:
    def test_a_good_one_is_returned_to_service(self, told: list[Fact]) -> None:
        row = parked()
        assert checked()[row.pk].done is Done.RETURNED
        now = columns(row)
        assert (now["status"], now["reason"], now["strikes"], now["until"]) == ("in_service", "", 0, None)
        assert busy_for(row) <= 0
        assert [fact.what for fact in told] == [What.CHECKED, What.RETURNED]

    def test_one_that_is_still_bad_stays_for_longer(self) -> None:
        row = parked(struck_at=DbLater(-60))
        Scripted.finds = {row.pk: BAD}
        assert checked()[row.pk].done is Done.QUARANTINED
        assert columns(row)["strikes"] == 4
        assert busy_for(row) > 2_000

    def test_one_that_nobody_can_say_anything_about_stays_for_as_long_as_before(self) -> None:
        row = parked()
        until = columns(row)["until"]
        Scripted.finds = {row.pk: UNKNOWN}
        checked()
        now = columns(row)
        assert (now["busy_before"], now["until"], now["status"]) == (until, until, "quarantined")
        assert now["holder"] == ""

    def test_what_an_operator_or_a_crawler_put_there_is_theirs(self) -> None:
        row = parked("403 from the shop")
        before = columns(row)
        assert checked() == {}
        assert columns(row) == before

    def test_unless_that_is_asked_for(self) -> None:
        row = parked("403 from the shop")
        assert checked(every_quarantine=True)[row.pk].done is Done.RETURNED

    def test_nobody_is_handed_it_while_it_is_looked_at(self) -> None:
        row = parked()
        seen: list[Any] = []
        Scripted.meanwhile = staticmethod(
            lambda one: seen.append((Proxy.pool.acquire(wait=False), columns(one)["holder"]))
        )
        checked()
        assert seen[0][0] is None
        assert seen[0][1].endswith("/check")
        assert columns(row)["fence"] == 7 + 2

    def test_a_returned_one_that_was_claimed_since_is_not_taken_from_its_holder(self) -> None:
        row = parked()
        (candidate,) = due(Proxy, None, every_quarantine=False, unless_within=0)
        Proxy.objects.filter(pk=row.pk).return_to_service()
        lease: Any = Proxy.pool.acquire()
        assert take(Proxy, candidate) is None
        lease.renew()

    def test_nor_one_that_was_parked_anew(self) -> None:
        row = parked()
        (candidate,) = due(Proxy, None, every_quarantine=False, unless_within=0)
        Proxy.objects.quarantine("by alice", 5_000)
        before = columns(row)
        assert take(Proxy, candidate) is None
        assert columns(row) == before

    def test_an_operator_who_decides_meanwhile_has_the_last_word(self) -> None:
        row = parked()

        def take_out(_: Any) -> None:
            Proxy.objects.filter(pk=row.pk).take_out("by alice")

        Scripted.meanwhile = staticmethod(take_out)
        assert checked()[row.pk].done is Done.NOTHING
        now = columns(row)
        assert (now["in_service"], now["status"], now["reason"]) == (False, "out_of_service", "by alice")


class TestTaken:
    @pytest.mark.parametrize("finding", [GOOD, BAD, UNKNOWN])
    @pytest.mark.parametrize("make", [lambda: new(Proxy), parked])
    def test_what_was_revoked_meanwhile_is_its_new_holders(self, make: Any, finding: Finding) -> None:
        row, held = make(), []
        Scripted.finds = {row.pk: finding}

        def revoke(_: Any) -> None:
            Proxy.objects.filter(pk=row.pk).revoke("stuck")
            held.append(hold(row))

        Scripted.meanwhile = staticmethod(revoke)
        found: list[Checked] = []
        check(Proxy, tell=found.append)
        assert [one.done for one in found] == [Done.LOST]
        held[0].renew()
        assert columns(row)["verdict"] == ""


class TestManyFailTogether:
    def test_the_checker_is_blamed_and_nothing_is_changed(self) -> None:
        rows = [*several(Proxy, 6), parked(), new(Proxy, verdict=Verdict.BAD)]
        Scripted.finds = {row.pk: BAD for row in rows}
        before = {row.pk: columns(row) for row in rows}
        found = Tally()
        with pytest.raises(CheckerBroken, match="6 of 6 failed together"):
            check(Proxy, tell=found)
        for row in rows:
            now = columns(row)
            same = [name for name in now if name not in ("fence", "busy_before")]
            assert {name: now[name] for name in same} == {name: before[row.pk][name] for name in same}
        assert [busy_for(row) <= 0 for row in rows] == [True] * 6 + [False, True]
        assert found.verdicts == {Verdict.BAD: 8}
        assert found.done == {Done.NOTHING: 8}
        assert not keeper.kept()

    def test_unless_it_is_to_be_believed(self) -> None:
        rows = several(Proxy, 6)
        Scripted.finds = {row.pk: BAD for row in rows}
        assert {one.done for one in checked(believe=True).values()} == {Done.QUARANTINED}

    def test_the_rest_is_not_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checking, "BATCH", 10)
        rows = several(Proxy, 25)
        Scripted.finds = {row.pk: BAD for row in rows}
        seen: list[Any] = []
        Scripted.meanwhile = staticmethod(seen.append)
        with pytest.raises(CheckerBroken):
            check(Proxy)
        assert len(seen) == 10

    def test_those_long_known_to_be_bad_are_not_counted(self) -> None:
        rows = [parked(verdict=Verdict.BAD) for _ in range(8)]
        Scripted.finds = {row.pk: BAD for row in rows}
        new(Proxy)
        assert sorted(one.done for one in checked().values()) == ["nothing"] + ["quarantined"] * 8


class TestDryRun:
    def test_looks_and_changes_nothing(self, told: list[Fact]) -> None:
        rows = [new(Proxy), new(Proxy), parked(), parked()]
        Scripted.finds = {rows[1].pk: BAD, rows[3].pk: BAD}
        before = [columns(row) for row in rows]
        found = checked(dry_run=True)
        assert [found[row.pk].verdict for row in rows] == ["ok", "bad", "ok", "bad"]
        for row, was in zip(rows, before, strict=True):
            now = columns(row)
            same = [name for name in now if name not in ("fence", "busy_before")]
            assert {name: now[name] for name in same} == {name: was[name] for name in same}
        assert [columns(row)["busy_before"] for row in rows[2:]] == [was["until"] for was in before[2:]]
        assert told == []


class TestAtOnce:
    def test_as_many_as_the_settings_say_and_no_more(self, settings: Any) -> None:
        chosen = {**settings.RESOURCEPOOL["CHECKS"]["resourcepool.Proxy"], "at_once": 4}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
        several(Proxy, 12)
        barrier, most, inside, lock = threading.Barrier(4), 0, 0, threading.Lock()

        def look(_: Any) -> None:
            nonlocal most, inside
            with lock:
                inside += 1
                most = max(most, inside)
            barrier.wait(10)  # four of them must be here together
            with lock:
                inside -= 1

        Scripted.meanwhile = staticmethod(look)
        assert len(checked()) == 12
        assert most == 4

    def test_two_runs_at_once_check_each_once(self) -> None:
        rows = several(Proxy, 10)
        seen: list[Any] = []
        gate = threading.Event()

        def look(row: Any) -> None:
            seen.append(row.pk)
            gate.wait(10)

        Scripted.meanwhile = staticmethod(look)
        first = InBackground(lambda: check(Proxy))
        eventually(lambda: len(seen) == 10)
        found = checked_while_held()
        gate.set()
        first.result()
        assert found == {}
        assert sorted(seen) == sorted(row.pk for row in rows)


class TestEndings:
    def test_a_database_that_has_gone_away_is_not_asked_again_for_each(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        several(Proxy, 5)
        asked = []

        def gone(lease: Any) -> None:
            asked.append(lease)
            raise DatabaseUnavailable("gone")

        def fail() -> None:
            if keeper.kept():
                monkeypatch.setattr(CheckLease, "put_back", gone)
                gate.set()
                raise DatabaseUnavailable("gone")

        gate = threading.Event()
        Scripted.meanwhile = staticmethod(lambda _: gate.wait(10))
        with pytest.raises(DatabaseUnavailable):
            check(Proxy, go_on=fail)
        assert len(asked) == 1
        assert "could not give back 5 resources" in caplog.text
        assert not keeper.kept()  # nothing renews them: they lapse

    def test_an_interruption_gives_everything_back_as_it_was(self) -> None:
        rows = [*several(Proxy, 5), parked()]
        Scripted.finds = {row.pk: BAD for row in rows[:3]}
        gate, turns = threading.Event(), iter(range(1_000))

        def look(row: Any) -> None:
            if row.pk in (rows[4].pk, rows[5].pk):
                gate.wait(10)

        def interrupt() -> None:
            if next(turns) and {columns(row)["holder"] for row in rows[3:4]} == {""}:
                gate.set()
                raise KeyboardInterrupt

        Scripted.meanwhile = staticmethod(look)
        with pytest.raises(KeyboardInterrupt):
            check(Proxy, go_on=interrupt)
        assert not keeper.kept()
        assert [busy_for(row) <= 0 for row in rows] == [True] * 5 + [False]
        assert {columns(row)["status"] for row in rows[:5]} == {"in_service"}
        assert {columns(row)["holder"] for row in rows} == {""}
        assert [columns(row)["verdict"] for row in rows] == ["", "", "", "ok", "", ""]

    def test_it_waits_for_those_that_are_being_looked_at(self) -> None:
        row, gate = new(Proxy), threading.Event()
        Scripted.meanwhile = staticmethod(lambda _: gate.wait(10))
        turns = iter(range(100))

        def interrupt() -> None:
            if next(turns) == 1:
                threading.Timer(0.2, gate.set).start()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            check(Proxy, go_on=interrupt)
        assert gate.is_set()
        assert columns(row)["holder"] == ""

    def test_a_checker_that_never_comes_back_is_not_waited_for(self, settings: Any) -> None:
        chosen = {**settings.RESOURCEPOOL["CHECKS"]["resourcepool.Proxy"], "timeout": 0.1}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
        row, gate = new(Proxy), threading.Event()
        Scripted.meanwhile = staticmethod(lambda _: gate.wait(30))
        found = checked()[row.pk]
        gate.set()
        assert (found.verdict, found.why) == (Verdict.UNKNOWN, "the checker did not come back in time")

    def test_what_a_checker_raises_counts_as_unknown_and_its_words_are_not_repeated(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        row = new(Proxy)

        def fail(_: Any) -> None:
            raise LookupError("http://joe:c4n4ry@p.example")

        Scripted.meanwhile = staticmethod(fail)
        found = checked()[row.pk]
        assert (found.verdict, found.why) == (Verdict.UNKNOWN, "the checker failed (LookupError)")
        assert "c4n4ry" not in caplog.text

    @pytest.mark.parametrize("nonsense", [None, "ok", Finding("fine")])  # type: ignore[arg-type]
    def test_so_does_nonsense(self, nonsense: Any) -> None:
        row = new(Proxy)
        Scripted.finds = {row.pk: nonsense}
        assert checked()[row.pk].verdict is Verdict.UNKNOWN

    def test_hostile_words_of_a_checker_become_one_short_line(self) -> None:
        row = new(Proxy)
        Scripted.finds = {row.pk: Finding(Verdict.BAD, 0.1, "no\r\n\x1b[31m<b>tone</b>\x00 " + "x" * 500)}
        why = checked()[row.pk].why
        assert why.startswith("no [31m<b>tone</b> xxx")
        assert len(why) == MOST_WORDS
        assert columns(row)["reason"] == f"check: {why}"

    def test_a_bad_one_without_words_is_quarantined_all_the_same(self) -> None:
        row = new(Proxy)
        Scripted.finds = {row.pk: Finding(Verdict.BAD)}
        assert checked()[row.pk].done is Done.QUARANTINED


def test_what_is_told_is_the_check_and_not_its_lease(told: list[Fact]) -> None:
    good, bad = new(Proxy), new(Proxy)
    Scripted.finds = {bad.pk: BAD}
    checked()
    of = {row.pk: [fact for fact in told if fact.pk == row.pk] for row in (good, bad)}
    assert [(fact.what, fact.reason, fact.seconds) for fact in of[good.pk]] == [(What.CHECKED, "ok", 0.1)]
    first, second = of[bad.pk]
    assert (first.what, first.reason, first.seconds) == (What.CHECKED, "bad: refused the connection", 0.2)
    assert second.what is What.QUARANTINED


def test_a_model_that_the_settings_do_not_mention_cannot_be_checked(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
    with pytest.raises(BadOption, match=r"CHECKS.*resourcepool.Proxy.*docs/validity.md"):
        check(Proxy)


def test_a_lease_of_a_check_is_lost_like_any_other() -> None:
    row = parked()
    (candidate,) = due(Proxy, None, every_quarantine=False, unless_within=0)
    lease: Any = take(Proxy, candidate)
    Proxy.objects.filter(pk=row.pk).revoke("stuck")
    with pytest.raises(LeaseLost):
        lease.put_back()


def checked_while_held() -> dict[Any, Checked]:
    found: list[Checked] = []
    check(Proxy, tell=found.append)
    return {one.pk: one for one in found}
