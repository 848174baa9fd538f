"""The connections of background threads: private, made on first use, and closed at the end."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connection, connections

from resourcepool.db import dialect
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
        assert connections["default"] is own["default"]
        assert first == own["default"]
        assert own["default"].settings_dict["CONN_MAX_AGE"] is None

    in_thread(work)


def test_are_made_only_for_the_databases_that_are_used(driverless: str) -> None:
    new(Bare)
    assert in_thread(lambda own: Bare.objects.count()) == 1


def test_say_what_is_wrong_with_a_database_when_it_is_used(driverless: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="driver"):
        in_thread(lambda own: Bare.objects.using(driverless).count())


def test_that_were_never_used_are_closed_without_being_made(driverless: str) -> None:
    def work(own: OwnConnections) -> bool:
        close_old_connections()
        connections.close_all()
        return "default" in own

    assert in_thread(work) is False


def test_that_were_never_used_are_not_made_for_a_fork(driverless: str) -> None:
    def work(own: OwnConnections) -> bool:
        dialect.close_files()
        return "default" in own

    assert in_thread(work) is False


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
        assert connections["default"] is own["default"]
    assert not own.are_open
    assert connection.cursor().connection is usual


def test_nested_are_given_back_one_by_one() -> None:
    def work(outer: OwnConnections) -> None:
        with own_connections() as inner:
            assert connections["default"] == inner["default"]
        assert connections["default"] == outer["default"]

    in_thread(work)
