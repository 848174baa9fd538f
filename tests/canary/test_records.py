"""No record, exception, message or output of a program reveals a secret."""

import copy
import pickle
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.core.checks import run_checks

from resourcepool.encryption.secret import encrypt
from resourcepool.exceptions import LeaseLost, ResourcePoolError
from resourcepool.health_checks.checker import check_settings_of
from resourcepool.history.recorder import recorder
from resourcepool.models import Job, Proxy
from resourcepool.signals import SIGNALS, RowEvent
from resourcepool.status.alarms import alarms
from resourcepool.status.resources.holders import active_leases
from resourcepool.status.resources.pools import pools
from resourcepool.status.resources.waiting import Lines
from resourcepool.status.resources.why import resource
from resourcepool.sweeps import sweep as sweeps
from resourcepool.sweeps.sweep import check_health
from tests.app.rows import new, steal
from tests.canary.planted import PASSWORD, TOKEN, found_in

LABEL = "resourcepool.Proxy"


@pytest.fixture
def events() -> Any:
    """What the signals tell."""
    told: list[RowEvent] = []

    def note(event: RowEvent, **_: Any) -> None:
        told.append(event)

    for signal in set(SIGNALS.values()):
        signal.connect(note)
    yield told
    for signal in set(SIGNALS.values()):
        signal.disconnect(note)


def test_a_life_of_a_lease_leaves_none_behind(events: list[RowEvent]) -> None:
    rows = [new(Proxy, username="joe", password=PASSWORD) for _ in range(2)]
    with Proxy.pool.lease() as lease:
        lease.fix("banned")
    taken: Any = Proxy.pool.acquire()
    steal(taken.resource)
    with pytest.raises(LeaseLost) as lost:
        taken.renew()
    Proxy.objects.all().revoke("by hand", actor="ann")
    Proxy.objects.all().reserve("Ann", "a test", actor="ann")
    Proxy.objects.all().quarantine("bad", 60, actor="ann")
    Proxy.objects.all().return_to_service(actor="ann")
    for job in (sweeps.sweep, sweeps.refresh_statistics, sweeps.prune, lambda: check_health(LABEL)):
        job()
    recorder.flush()
    assert {event.kind for event in events} > {"acquired", "fixed", "lost", "revoked", "reserved", "checked"}
    for one in (lease, taken, *events, *rows, lost.value):
        assert not found_in(f"{one!r} {one}"), type(one)
    nothing_is_stored()


def nothing_is_stored() -> None:
    """Fail if any column of any table has a secret as it is; in one place there is one, encrypted."""
    seen = 0
    for model in apps.get_models():
        if model._meta.managed:
            for row in model._base_manager.values():
                assert not found_in(row), model
                seen += 1
    assert seen
    assert any(found_in(proxy.password) for proxy in Proxy.objects.all()), "it was planted, and is still there"


def test_no_object_for_programs_shows_one(planted: Proxy) -> None:
    rules = check_settings_of(Proxy)
    for one in (
        *(
            planted,
            encrypt(PASSWORD, ("canary",)),
            [planted],
            Proxy.objects.all(),
            copy.copy(planted),
            Proxy.pool,
            rules,
            rules.checker,
        ),
        *(pools(), alarms(), active_leases(Proxy), *Lines([Proxy], ()).page().waiters, resource(planted)),
    ):
        assert not found_in(f"{one!r} {one}"), type(one)


def test_a_copy_that_is_sent_elsewhere_has_it_encrypted(planted: Proxy) -> None:
    fresh = Proxy.objects.get(pk=planted.pk)
    assert PASSWORD.encode() not in pickle.dumps(fresh)
    assert not found_in(serializers.serialize("json", [fresh]))
    assert fresh.password == PASSWORD


@pytest.mark.parametrize(
    "url", [f"http://joe:{PASSWORD}@target.example/", f"http://127.0.0.1/?key={TOKEN}", TOKEN]
)
def test_settings_that_are_refused_are_not_repeated(url: str, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {LABEL: {"url": url}}, "SECRET_KEYS": [TOKEN]}
    found = run_checks(tags=["resourcepool"])
    assert found
    assert not found_in([*found, *(one.hint for one in found)])
    with pytest.raises(ResourcePoolError) as refused:
        check_health(LABEL)
    assert not found_in(refused.value)
    assert not found_in(list(Job.objects.values()))
