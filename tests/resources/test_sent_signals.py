"""Events of operations: one per changed row, and none for unchanged rows."""

from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.resources import queryset
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind, RowEvent
from tests.app.rows import granted, new
from tests.resources.sent_signals import events

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
