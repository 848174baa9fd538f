"""Requests are cached, and never confused with others."""

import re
from typing import Any

import pytest
from django.test import override_settings

from resourcepool.exceptions import BadOption
from resourcepool.leases.terms import Request
from resourcepool.models import Proxy
from resourcepool.resources import pool as pools
from resourcepool.resources.pool import Pool
from tests.app.models import Device
from tests.app.rows import columns, new


def pool_of(model: Any) -> Pool[Any]:
    """Return a pool that has checked no requests."""
    return Pool().__get__(None, model)


@pytest.fixture
def pool() -> Pool[Any]:
    return pool_of(Device)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that were not cached."""
    checked: list[Any] = []
    check = pools.check_request

    def counted(*args: Any) -> Request:
        checked.append(args)
        return check(*args)

    monkeypatch.setattr(pools, "check_request", counted)
    return checked


def test_the_same_request_is_checked_once(pool: Pool[Any], checks: list[Any]) -> None:
    first, second = (pool.request(1, {"timeout": 5, "kind": "phone"}) for _ in range(2))
    assert len(checks) == 1
    assert first is second


@pytest.mark.django_db(transaction=True)
def test_each_grant_has_a_holder_of_its_own() -> None:
    new(Proxy)
    first: Any = Proxy.pool.acquire()
    first.release()
    second: Any = Proxy.pool.acquire()
    assert first.holder != second.holder == columns(second.resource)["holder"]
    second.release()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"timeout": 1}, {"timeout": True}),
        ({"slots": (1, 2)}, {"slots": (True, 2)}),
        ({"ttl": 1}, {"ttl": "1"}),
    ],
)
def test_what_only_looks_equal_is_checked_again(
    pool: Pool[Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    pool.request(1, first)
    with pytest.raises(BadOption):
        pool.request(1, second)


def test_a_count_that_is_no_number_is_refused_after_one_that_is(pool: Pool[Any]) -> None:
    pool.request(1, {})
    with pytest.raises(BadOption):
        pool.request(True, {})


@pytest.mark.parametrize("criteria", [{"holder": "me"}, {"on_lost": print}, {"kind": ["phone", "tablet"]}])
def test_what_is_mostly_used_once_is_not_remembered(
    pool: Pool[Any], checks: list[Any], criteria: dict[str, Any]
) -> None:
    for _ in range(2):
        assert pool.request(1, criteria).count == 1
    assert len(checks) == 2


def test_other_settings_count_at_once(pool: Pool[Any]) -> None:
    with override_settings(RESOURCEPOOL={"TTL": 7}):
        assert pool.request(1, {}).terms.ttl == 7
    with override_settings(RESOURCEPOOL={"TTL": 8}):
        assert pool.request(1, {}).terms.ttl == 8


def test_what_was_checked_while_the_settings_changed_is_not_remembered_under_the_new_ones(
    pool: Pool[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads: one builds with old settings while the other is the first to see new ones."""
    check, changes = pools.check_request, [override_settings(RESOURCEPOOL={"TTL": 8})]

    def slowly(*args: Any) -> Request:
        checked = check(*args)
        if changes:
            changes.pop().enable()
            pool.request(1, {"timeout": 5})
        return checked

    monkeypatch.setattr(pools, "check_request", slowly)
    new_settings = changes[0]
    try:
        assert pool.request(1, {}).terms.ttl == 60
        assert pool.request(1, {}).terms.ttl == 8
    finally:
        new_settings.disable()


def test_memory_is_bounded(pool: Pool[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MAX_CACHED", 3)
    for timeout in range(10):
        pool.request(1, {"timeout": timeout})
        assert len(pool._checked) <= 3
    assert pool.request(1, {"timeout": 9}).timeout == 9


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"TLL": 3}, "RESOURCEPOOL['TLL']: no such setting; did you mean 'TTL'?"),
        ({"ttl": 3}, "RESOURCEPOOL['ttl']: no such setting; did you mean 'TTL'?"),
        (
            {"POOLS": {"resourcepool.Proxy": {"tll": 3}}},
            "RESOURCEPOOL['POOLS']['resourcepool.Proxy']['tll']: no such setting; did you mean 'ttl'?",
        ),
        ({"POOLS": {"resourcepool.Proxy": {"size": 3}}}, "['size']: no such setting"),
    ],
)
def test_an_unknown_setting_is_refused_by_a_script_too(settings: Any, chosen: Any, said: str) -> None:
    settings.RESOURCEPOOL = chosen
    for _ in range(2):
        with pytest.raises(BadOption, match=re.escape(said)):
            pool_of(Proxy).request(1, {})
