"""Events of operations: one per changed row, and none for unchanged rows."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.leases import lease as leases
from resourcepool.models import Proxy
from resourcepool.resources import queryset
from resourcepool.resources.state import Status
from resourcepool.signals import SIGNALS, EventKind, RowEvent
from tests.app.models import Device
from tests.app.rows import change, columns, expire, granted, new
from tests.resources.sent_signals import CHANGES, events

__all__ = ["events"]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


class TestWhatIsTold:
    @pytest.mark.parametrize(
        ("act", "what", "reason"),
        [
            (lambda rows: rows.drain("sold", actor="alice"), EventKind.DRAINED, "sold"),
            (lambda rows: rows.reserve("bob", "tests", actor="alice"), EventKind.RESERVED, "bob: tests"),
            (lambda rows: rows.quarantine("banned", 60, actor="alice"), EventKind.QUARANTINED, "banned"),
            (lambda rows: rows.retire("broken", actor="alice"), EventKind.DRAINED, "broken"),
        ],
    )
    def test_each_change_is_told_once_for_each_row(
        self, events: list[RowEvent], act: Any, what: EventKind, reason: str
    ) -> None:
        rows = [new(Proxy) for _ in range(3)]
        assert act(Proxy.objects.all()) == 3
        assert sorted(event.pk for event in events) == [row.pk for row in rows]
        assert {(event.kind, event.reason, event.actor) for event in events} == {(what, reason, "alice")}

    def test_a_return_is_told_of_those_that_were_away(self, events: list[RowEvent]) -> None:
        away, here = new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE), new(Proxy)
        both = Proxy.objects.filter(pk__in=[away.pk, here.pk])
        assert both.return_to_service(reason="new cable is in", actor="alice") == 1
        told = [(event.kind, event.pk, event.reason, event.actor) for event in events]
        assert told == [(EventKind.RETURNED, away.pk, "new cable is in", "alice")]

    def test_a_deletion_is_told_of_those_that_stay_because_they_are_held(self, events: list[RowEvent]) -> None:
        held, _free = new(Proxy), new(Proxy)
        granted(held)
        assert Proxy.objects.all().delete(actor="alice")[0] == 1
        assert [(event.kind, event.pk, event.reason, event.actor) for event in events] == [
            (EventKind.DRAINED, held.pk, "deleted while it was held", "alice")
        ]


class TestWhatIsToldIsWhatWasDone:
    """Another process may change the rows between reading and changing them."""

    @pytest.fixture
    def before_the_change(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Run a function once between reading and changing the rows."""

        def do(what: Any) -> None:
            read = queryset._keys

            def late(rows: Any) -> Any:
                monkeypatch.setattr(queryset, "_keys", read)
                found = read(rows)
                what()
                return found

            monkeypatch.setattr(queryset, "_keys", late)

        return do

    def test_a_return_that_somebody_else_made_first_is_told_of_them_alone(
        self, proxy: Any, events: list[RowEvent], before_the_change: Any
    ) -> None:
        Proxy.objects.drain("new cable")
        before_the_change(lambda: Proxy.objects.return_to_service(actor="bob"))
        assert Proxy.objects.return_to_service(actor="alice") == 0
        assert [event.actor for event in events if event.kind is EventKind.RETURNED] == ["bob"]

    def test_a_quarantine_of_what_is_claimed_meanwhile_is_told_once_under_the_lease(
        self, proxy: Any, events: list[RowEvent], before_the_change: Any
    ) -> None:
        claimed: list[Any] = []
        before_the_change(lambda: claimed.append(Proxy.pool.acquire()))
        assert Proxy.objects.quarantine("smells", 60) == 1
        (told,) = [event for event in events if event.kind is EventKind.QUARANTINED]
        assert told.fence == claimed[0].fence
        claimed[0].release()


# Signals only notify: with or without receivers, rows change in the same way.


def rows() -> list[Any]:
    """Return a free row, a held one, a quarantined one, one whose quarantine ended, and one whose holder crashed."""
    _free, held, parked, due, dead = found = [new(Proxy) for _ in range(5)]
    granted(held)
    Proxy.objects.filter(pk=parked.pk).quarantine("smells", 60)
    Proxy.objects.filter(pk=due.pk).drain("new cable", duration=60)
    change(due, until="2000-01-01T00:00:00Z")
    granted(dead)
    expire(dead)
    return found


def outcome(do: Callable[[Any], object]) -> list[Any]:
    """Apply it to such rows; return their states, without times."""
    made = rows()
    pks = [row.pk for row in made]
    answer = do(Proxy.objects.filter(pk__in=pks))
    there = set(Proxy.objects.filter(pk__in=pks).values_list("pk", flat=True))
    found = [columns(row) if row.pk in there else {} for row in made]
    left_out = ("id", "host", "holder", "busy_before", "until")
    alike = [{name: value for name, value in one.items() if name not in left_out} for one in found]
    ends = [(bool(one.get("holder")), one.get("until") is None) for one in found]
    return [answer, alike, ends]


@pytest.mark.parametrize("name", CHANGES)
def test_whether_or_not_anybody_listens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = outcome(CHANGES[name])
    Proxy.objects.all()._raw_delete("default")
    for signal in set(SIGNALS.values()):
        monkeypatch.setattr(signal, "receivers", [])
    assert not any(what.has_listeners(Proxy) for what in EventKind)
    assert outcome(CHANGES[name]) == heard


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[EventKind]:
    """The kinds of events that leases emit."""
    kinds: list[EventKind] = []

    def noted(what: EventKind, *args: Any, **details: Any) -> RowEvent:
        kinds.append(what)
        return RowEvent(what, *args, **details)

    monkeypatch.setattr(leases, "RowEvent", noted)
    return kinds


class TestALeaseMakesNoFact:
    def test_that_nobody_hears(self, made: list[EventKind]) -> None:
        with Proxy.pool.lease() if new(Proxy) else None:  # type: ignore[union-attr]
            pass
        assert made == []

    def test_but_one_for_whoever_listens(self, made: list[EventKind], events: list[RowEvent]) -> None:
        with Proxy.pool.lease() if new(Proxy) else None:  # type: ignore[union-attr]
            pass
        assert made == [event.kind for event in events] == [EventKind.ACQUIRED, EventKind.RELEASED]

    def test_and_for_the_history_of_a_lease_that_began_when_its_pool_kept_one(
        self, made: list[EventKind], settings: Any
    ) -> None:
        new(Proxy)
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "POOLS": {"resourcepool.Proxy": {"history": True}}}
        assert EventKind.RELEASED.has_listeners(Proxy)
        assert not EventKind.RELEASED.has_listeners(Device)
        lease: Any = Proxy.pool.acquire()
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "POOLS": {}}
        assert not EventKind.RELEASED.has_listeners(Proxy)
        lease.release()
        assert made == [EventKind.ACQUIRED, EventKind.RELEASED]
