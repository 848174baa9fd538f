"""What users of redis-py's and django-redis's locks know, under their names."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.lock import Lock as RedisLock

from resourcepool.contrib.cache_lock import RedisStyleLock, cache_lock
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, NotHeld
from resourcepool.locks import Lock
from resourcepool.locks.models import Lock as LockRow
from tests.app.rows import steal
from tests.eventually import InBackground
from tests.spawned import ROOT


def test_it_is_taken_and_released() -> None:
    one = cache_lock("report", timeout=30, blocking_timeout=5)
    assert one.acquire() is True
    assert one.owned()
    assert one.locked()
    assert one.extend(10) is one.reacquire() is True
    one.release()
    assert not one.locked()


def test_another_thread_is_told_that_it_is_taken() -> None:
    with cache_lock("report", timeout=30):
        other = cache_lock("report")
        assert InBackground(lambda: other.acquire(blocking=False)).result() is False
        assert InBackground(lambda: other.acquire(blocking_timeout=0.05)).result() is False
        assert InBackground(other.owned).result() is False
        with pytest.raises(NotHeld):
            InBackground(other.extend).result()
        with pytest.raises(AcquireTimeout):
            InBackground(cache_lock("report", blocking=False).__enter__).result()


def test_it_is_the_same_lock_as_ours() -> None:
    with cache_lock("report"):
        assert Lock("report").owned()
    with cache_lock("report", version=2):
        assert Lock("report:2").owned()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timeout", 0.05),
        ("timeout", False),
        ("timeout", float("nan")),
        ("blocking_timeout", "5"),
        ("blocking_timeout", -2),
        ("blocking", 1),
    ],
)
def test_a_bad_option_is_refused_under_its_own_name(option: str, value: Any) -> None:
    with pytest.raises(BadOption, match=f"^{option}="):
        cache_lock("report", **{option: value})


def test_a_bad_wait_is_refused_under_its_own_name() -> None:
    with pytest.raises(BadOption, match=r"^blocking_timeout=-2"):
        cache_lock("report").acquire(blocking_timeout=-2)


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("key", [None, b"\xff", 5, "", b"", "x" * 201])
def test_a_key_that_is_no_name_is_refused_also_with_a_version(key: Any, version: Any) -> None:
    with pytest.raises(BadOption, match=r"^key="):
        cache_lock(key, version=version)


@pytest.mark.parametrize("key", [b"report ", "report ", " report"])
def test_a_key_with_a_space_at_an_end_is_refused_and_says_so(key: Any) -> None:
    """MariaDB would take it for the key without."""
    with pytest.raises(BadOption, match=r"^key=.*without a space at either end"):
        cache_lock(key)


def test_it_takes_what_redis_py_takes() -> None:
    """So a call need not be changed."""
    theirs, ours = inspect.signature(Redis.lock).parameters, inspect.signature(cache_lock).parameters
    assert set(theirs) - {"self", "name"} <= set(ours)
    methods = [name for name in vars(RedisLock) if not name.startswith("_")]
    for name in {"acquire", "release", "extend", "reacquire", "locked", "owned"} & set(methods):
        theirs = inspect.signature(getattr(RedisLock, name)).parameters
        assert set(theirs) <= set(inspect.signature(getattr(RedisStyleLock, name)).parameters), name


def test_a_name_in_bytes_is_the_same_name_and_a_timeout_of_0_the_usual_one() -> None:
    """Of redis-py's, which reads its own names as bytes, and for which 0 is no timeout."""
    with cache_lock("Büro".encode(), timeout=0):
        assert Lock("Büro").owned()
    with cache_lock(b"report", version=2):
        assert Lock("report:2").owned()


def test_it_has_the_attributes_of_redis_py() -> None:
    theirs, ours = RedisLock(Redis(), "report", sleep=0.2, thread_local=False), cache_lock("report", sleep=0.2)
    missing = {name for name in vars(theirs) if not hasattr(ours, name)}
    assert missing == {"redis", "local"}  # their client, and their token
    assert (ours.sleep, ours.thread_local) == (0.2, True)


def test_what_is_given_by_position_is_what_django_redis_takes_there() -> None:
    """Of django-redis 5.4 to 7.0, but for its first one, ``self``."""
    theirs = ["key", "version", "timeout", "sleep", "blocking", "blocking_timeout", "client", "thread_local"]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    ours = inspect.signature(cache_lock).parameters.values()
    assert [one.name for one in ours if one.kind is positional] == theirs


KAZOO = {  # 2.11
    "Lock": "acquire ephemeral cancel contenders release is_acquired",
    "ReadLock": "",
    "WriteLock": "",
    "Semaphore": "acquire cancel lease_holders max_leases release is_acquired",
    "Election": "run cancel contenders",
    "Barrier": "create remove wait",
    "DoubleBarrier": "enter leave",
    "Counter": "value pre_value post_value",
    "Party": "join leave",
    "NonBlockingLease": "",
    "MultiNonBlockingLease": "",
}


def test_the_page_tells_of_each_call_of_theirs_what_it_is_here() -> None:
    page = (Path(ROOT) / "docs/how-to/move-from-other-systems.md").read_text()
    redis, kazoo = page.partition("| redis-py")[2].split("\n\n")[:2]
    options = {*inspect.signature(Redis.lock).parameters, *inspect.signature(cache_lock).parameters}
    calls = {name for name in vars(RedisLock) if name[0] != "_" and not name.lower().startswith("lua_")}
    assert {name for name in options | calls if f"`{name}" not in redis} == {"self", "name", "key"}
    for recipe, theirs in KAZOO.items():
        lines = "\n".join(line for line in kazoo.splitlines() if recipe in line or "its `" in line)
        assert [call for call in theirs.split() if call not in lines] == [], recipe


def test_a_with_block_that_does_not_get_it_says_who_has_it() -> None:
    with Lock("report") as held, pytest.raises(AcquireTimeout) as error:
        InBackground(cache_lock("report", blocking_timeout=0.05).__enter__).result()
    assert "within 0.05 s" in str(error.value)
    assert held.holder in str(error.value)


def test_an_error_at_the_end_of_a_block_is_only_logged_if_that_was_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with cache_lock("report", raise_on_release_error=False):
        Lock("report").release()
    assert "not held" in caplog.text
    with pytest.raises(NotHeld), cache_lock("report"):
        Lock("report").release()
    with pytest.raises(LeaseLost), cache_lock("report"):
        steal(LockRow.objects.get(pk="report"))
