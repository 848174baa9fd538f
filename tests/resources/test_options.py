"""Options out of range are refused before any statement, with name, value and allowed values."""

import asyncio
import datetime
from typing import Any

import pytest

from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.committed import Statement

TIMES = "seconds or a timedelta, from {} s to 1 day (86,400 s)"
LONG = datetime.timedelta(days=2)

WRONG: list[tuple[str, Any, str]] = [
    *(
        ("ttl", value, TIMES.format("0.1"))
        for value in (0, -1, 0.09, 86_401, LONG, "60", True, float("nan"), [])
    ),
    *(("max_hold", value, TIMES.format("0.1")) for value in (0, -5, "1 h", float("inf"))),
    *(("timeout", value, TIMES.format("0")) for value in (-0.001, 1e9, "soon", float("-inf"), b"1")),
    *(("cooldown", value, TIMES.format("0")) for value in (-1, LONG, "none", {})),
    *(
        ("priority", value, "a whole number from -1000000 to 1000000")
        for value in (1.5, "high", 10**7, None, True)
    ),
    *(("strategy", value, "one of random, spread, sticky") for value in ("fair", "", 3, "Spread", ["sticky"])),
    *(("holder", value, "one line of text, 1 to 200 printable characters") for value in ("", "x" * 201, 7)),
    ("holder", "a\nb", "one line of text, 1 to 200 printable characters; U+000A is not printable"),
    ("on_lost", "tell me", "a plain function that takes the lease"),
    *(("allow_in_transaction", value, "True or False") for value in ("no", 1, None)),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_is_refused_by_name_value_and_what_is_allowed(
    name: str, value: Any, allowed: str, statements: list[Statement]
) -> None:
    for acquire in (
        Proxy.pool.acquire,
        lambda **criteria: Proxy.pool.acquire_many(2, **criteria),
        lambda **criteria: Proxy.pool.lease(**criteria).__enter__(),
        lambda **criteria: Proxy.pool.adopt(1, 1, **criteria),
    ):
        with pytest.raises(BadOption) as caught:
            acquire(**{name: value})
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
        assert str(caught.value) == f"{name}={shown} is not allowed: it must be {allowed}"
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, ResourcePoolError)
    assert statements == []


@pytest.mark.parametrize("wait", [None, 0, "False"])
def test_wait_is_true_or_false(wait: Any, statements: list[Statement]) -> None:
    for acquire in (
        lambda: Proxy.pool.acquire(wait=wait),
        lambda: Proxy.pool.acquire_many(2, wait=wait),
        lambda: asyncio.run(Proxy.pool.aacquire(wait=wait)),  # type: ignore[arg-type]
        lambda: asyncio.run(Proxy.pool.aacquire_many(2, wait=wait)),  # type: ignore[arg-type]
    ):
        with pytest.raises(BadOption, match=r"^wait=.* is not allowed: it must be True or False$"):
            acquire()
    assert statements == []


@pytest.mark.parametrize("count", [0, -1, 1_001, 2.0, "2", None, True])
def test_a_count_out_of_range_is_refused(count: Any) -> None:
    with pytest.raises(BadOption, match=r"count=.* is not allowed: it must be a whole number from 1 to 1000"):
        Proxy.pool.acquire_many(count)


@pytest.mark.parametrize("fence", [0, -1, "1", 1.0, None, 2**63])
def test_a_fence_that_cannot_be_is_refused(fence: Any) -> None:
    with pytest.raises(BadOption, match=r"fence=.* is not allowed"):
        Proxy.pool.adopt(1, fence)


@pytest.mark.parametrize("pk", ["a", 10**30, float("inf"), float("nan"), b"x"])
def test_a_primary_key_that_cannot_be_is_refused(pk: Any) -> None:
    with pytest.raises(
        BadOption, match=r"^pk=.* is not allowed: it must be a primary key of resourcepool.Proxy"
    ):
        Proxy.pool.adopt(pk, 1)


@pytest.mark.parametrize(
    ("reason", "options", "wrong"),
    [
        *((reason, {}, "reason=") for reason in ("", "a\nb", "x" * 201, None)),
        ("bad", {"timeout": -1}, "timeout=-1"),
    ],
)
def test_a_wrong_reason_or_timeout_changes_nothing(reason: Any, options: Any, wrong: str) -> None:
    proxy = new(Proxy)
    lease = Proxy.pool.acquire()
    before = columns(proxy)
    for use in (lease.fix,) if options else (lease.fix, lease.quarantine):
        with pytest.raises(BadOption, match=wrong):
            use(reason, **options)
    assert columns(proxy) == before
    lease.ensure_held()
    lease.release()


def test_the_limits_themselves_are_allowed() -> None:
    new(Proxy)
    for options in (
        {"ttl": 0.1},
        {"ttl": 86_400},
        {"cooldown": 0},
        {"timeout": 86_400},
        {"priority": -1_000_000},
    ):
        Proxy.pool.acquire(**options).release()


def test_none_stands_for_the_pools_default() -> None:
    new(Proxy)
    with Proxy.pool.lease(
        ttl=None, timeout=None, cooldown=None, max_hold=None, strategy=None, holder=None, on_lost=None
    ) as lease:
        assert (lease._terms.ttl, lease._terms.max_hold, lease._request.strategy) == (60, None, "spread")
