"""The connections of background threads: private, opened on first use, and closed at the end."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections

from resourcepool.db.background import OwnConnections, own_connections
from resourcepool.leases import shutdown
from resourcepool.leases.keeper import keeper
from tests.app.models import Bare, Device
from tests.app.rows import busy_for, hold, new
from tests.eventually import InBackground

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def driverless(monkeypatch: pytest.MonkeyPatch) -> str:
    """A database in the settings that nobody can use."""
    settings = {**connections.settings["default"], "ENGINE": "no.such.driver"}
    monkeypatch.setitem(connections.settings, "driverless", settings)
    return "driverless"


def in_thread(work: Callable[[OwnConnections], Any]) -> Any:
    """Return what ``work`` returns in a thread with connections of its own."""

    def run() -> Any:
        with own_connections() as own:
            return work(own)

    return InBackground(run).result()


def test_are_private_and_the_same_for_the_orm() -> None:
    new(Bare)

    def work(own: OwnConnections) -> None:
        first = connections["default"]
        assert not own.are_open
        assert Bare.objects.count() == 1
        assert own.are_open
        assert connections["default"] is own._made["default"]
        assert first == own._made["default"]
        assert own._made["default"].settings_dict["CONN_MAX_AGE"] is None

    in_thread(work)


def test_need_no_driver_for_a_database_that_is_not_used(driverless: str) -> None:
    new(Bare)
    assert in_thread(lambda own: Bare.objects.count()) == 1


def test_say_what_is_wrong_with_a_database_when_it_is_used(driverless: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="driver"):
        in_thread(lambda own: Bare.objects.using(driverless).count())


def test_to_a_database_without_leases_are_ordinary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        connections.settings, "other", {**connections.settings["default"], "ENGINE": "django.db.backends.dummy"}
    )
    assert in_thread(lambda own: connections["other"].vendor) == "unknown"


def test_that_fail_do_not_keep_the_end_from_releasing_elsewhere(driverless: str) -> None:
    unreachable, device = hold(new(Bare)), new(Device)
    unreachable.using = driverless
    shutdown.release_everything([unreachable, hold(device)])
    assert busy_for(device) <= 0
    assert keeper.leases() == [unreachable]


def test_of_a_thread_come_back_when_it_has_used_its_own() -> None:
    usual = connection.cursor().connection
    with own_connections() as own:
        Bare.objects.count()
        assert connections["default"] is own._made["default"]
    assert not own.are_open
    assert connection.cursor().connection is usual


def test_nested_are_given_back_one_by_one() -> None:
    def work(outer: OwnConnections) -> None:
        with own_connections() as inner:
            assert connections["default"] == inner._made["default"]
        assert connections["default"] == outer._made["default"]

    in_thread(work)
