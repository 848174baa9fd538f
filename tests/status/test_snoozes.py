"""Snoozed alarms: for an hour, with a name, for everybody."""

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Event
from resourcepool.signals import alarm_snoozed
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.alarms import key_of, snooze, snoozes

pytestmark = pytest.mark.django_db
BLOCKED = Alarm(AlarmKind.BLOCKED, "stream: oracle", "blocked").id


def test_an_alarm_is_snoozed_for_an_hour_with_the_name_of_who_did_it() -> None:
    snooze(BLOCKED, "maria")
    (one,) = snoozes().values()
    assert one.by == "maria"
    assert 3_590 < one.left <= 3_600
    assert list(snoozes()) == ["blocked stream: oracle"]


def test_receivers_are_told() -> None:
    told: list[tuple[str, str, float]] = []

    def note(alarm: str, by: str, seconds: float, **_: object) -> None:
        told.append((alarm, by, seconds))

    alarm_snoozed.connect(note)
    snooze(BLOCKED, "maria", 60)
    alarm_snoozed.disconnect(note)
    assert told == [(BLOCKED, "maria", 60)]


def test_a_snooze_ends_by_itself() -> None:
    snooze(BLOCKED, "maria")
    Event.objects.update(at=DbLater(-3_601))
    assert snoozes() == {}


def test_the_last_one_counts_and_zero_ends_it() -> None:
    snooze(BLOCKED, "maria")
    snooze(BLOCKED, "ann")
    assert snoozes()[BLOCKED].by == "ann"
    snooze(BLOCKED, "maria", 0)
    assert snoozes() == {}
    assert [event.actor for event in Event.objects.order_by("pk")] == ["maria", "ann", "maria"]


def test_nobody_snoozes_for_longer() -> None:
    snooze(BLOCKED, "maria", 1e9)
    assert snoozes()[BLOCKED].left <= 3_600


@pytest.mark.parametrize("name", ["x" * 300, "a\x00b", "a\nb"])
def test_any_subject_is_found_again(name: str) -> None:
    alarm = Alarm(AlarmKind.BLOCKED, f"stream: {name}", "blocked").id
    snooze(alarm, "maria")
    assert key_of(alarm) in snoozes()
