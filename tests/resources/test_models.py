"""The models of resources: changed proxies."""

import copy as copying
import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from resourcepool.resources.state import State, Status, state_details
from tests.app.rows import new

SECRET = "c4nary-s3cret"
ELSEWHERE = [("scheme", "https"), ("host", "evil.example"), ("port", 81), ("username", "ann")]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy, host="a.example", port=80, username="joe", password=SECRET)


class TestAPasswordBelongsToItsAddress:
    @pytest.mark.parametrize(("field", "value"), ELSEWHERE)
    @pytest.mark.parametrize("names", [None, True])
    def test_and_is_unreadable_when_that_changes(self, proxy: Any, field: str, value: Any, names: Any) -> None:
        copy = Proxy.objects.get()
        setattr(copy, field, value)
        copy.save(update_fields=[field] if names else None)
        stored = Proxy.objects.get()
        assert getattr(stored, field) == value
        with pytest.raises(SecretUnreadable):
            _ = stored.url

    @pytest.mark.parametrize(
        "rows", [Proxy.objects, Proxy.objects.only("notes"), Proxy.objects.defer("password")]
    )
    def test_also_where_all_of_it_is_checked_or_only_some_columns_were_read(
        self, proxy: Any, rows: Any
    ) -> None:
        copy = rows.get()
        copy.host = "evil.example"
        if rows is Proxy.objects:
            copy.full_clean()
        copy.save()
        with pytest.raises(SecretUnreadable):
            _ = Proxy.objects.get().url

    def test_whoever_can_read_it_can_take_it_along(self, proxy: Any) -> None:
        copy = Proxy.objects.get()
        copy.host, copy.password = "b.example", copy.password
        copy.save()
        assert Proxy.objects.get().url == f"http://joe:{SECRET}@b.example:80"

    def test_what_is_not_written_changes_nothing(self, proxy: Any) -> None:
        copy = Proxy.objects.get()
        copy.host = "evil.example"
        copy.save(update_fields=["notes"])
        assert Proxy.objects.get().url == f"http://joe:{SECRET}@a.example:80"


class TestACopyThatIsSavedAsANewRow:
    """``copy.copy`` copies the notes about the read row; saving the copy does not change the original."""

    def test_leaves_the_password_of_the_other_to_its_address(self, proxy: Any) -> None:
        read = Proxy.objects.get()
        saved_as_new(read, host="b.example")
        read.host = "evil.example"
        read.save()
        with pytest.raises(SecretUnreadable):
            _ = Proxy.objects.get(pk=proxy.pk).password

    def test_undoes_nothing_that_an_operator_decided_about_the_other(self, proxy: Any) -> None:
        read = Proxy.objects.get()
        saved_as_new(read, host="b.example", in_service=False)
        Proxy.objects.filter(pk=proxy.pk).update(in_service=False)
        read.save()
        assert not Proxy.objects.get(pk=proxy.pk).in_service


def saved_as_new(row: Any, **fields: Any) -> None:
    other = copying.copy(row)
    other.pk = None
    for name, value in fields.items():
        setattr(other, name, value)
    other.save()


# The state of a row at one moment, computed without a database.


NOW = datetime.datetime(2026, 11, 21, 3, 0, tzinfo=datetime.UTC)
BEFORE, LATER = NOW - datetime.timedelta(seconds=1), NOW + datetime.timedelta(days=2)
PARKED = {"in_service": True, "status": Status.QUARANTINED, "reason": "vendor has it"}
AFTER = {**PARKED, "in_service": False}  # it was put there while it was held
OUT = {"in_service": False, "status": Status.OUT_OF_SERVICE, "reason": "new cable", "holder": ""}


@pytest.mark.parametrize(
    ("row", "state", "holds"),
    [
        ({**PARKED, "busy_before": LATER, "until": LATER, "holder": ""}, State.QUARANTINED, True),
        ({**PARKED, "busy_before": LATER, "until": LATER, "holder": "a check"}, State.LEASED, True),
        ({**PARKED, "busy_before": BEFORE, "until": BEFORE, "holder": ""}, State.FREE, False),
        ({**PARKED, "busy_before": LATER, "until": BEFORE, "holder": "me"}, State.LEASED, False),
        ({**PARKED, "busy_before": LATER, "until": BEFORE, "holder": ""}, State.COOLING, False),
        ({**PARKED, "busy_before": LATER, "until": NOW, "holder": ""}, State.COOLING, False),
        ({**AFTER, "busy_before": LATER, "until": LATER, "holder": "me"}, State.DRAINING, True),
        ({**AFTER, "busy_before": BEFORE, "until": LATER, "holder": ""}, State.QUARANTINED, True),
        ({**AFTER, "busy_before": BEFORE, "until": LATER, "holder": "a dead one"}, State.QUARANTINED, True),
        ({**OUT, "busy_before": BEFORE, "until": None}, State.OUT, True),
        ({**OUT, "busy_before": BEFORE, "until": BEFORE}, State.OUT, True),  # until a sweep returns it
    ],
)
def test_a_reason_holds_until_its_quarantine_is_over(row: dict[str, Any], state: State, holds: bool) -> None:
    now = state_details(SimpleNamespace(**row), NOW)
    assert now.state is state
    kept = (row["status"], row["reason"], row["until"])
    assert (now.status, now.reason, now.until) == (kept if holds else (Status.IN_SERVICE, "", None))
