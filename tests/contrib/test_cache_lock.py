"""What users of redis-py's and django-redis's locks know, under their names."""

import inspect
from pathlib import Path

import pytest
from redis import Redis
from redis.lock import Lock as RedisLock

from resourcepool.contrib.cache_lock import cache_lock
from resourcepool.exceptions import AcquireTimeout
from resourcepool.locks import Lock
from tests.eventually import InBackground
from tests.spawned import ROOT


def test_it_is_a_lock_with_these_options() -> None:
    with cache_lock("report", timeout=7) as held:
        assert Lock("report").owned()
        assert 0 < held.remaining <= 7
        assert not InBackground(cache_lock("report", blocking=False).acquire).result()
        assert not InBackground(cache_lock("report", blocking_timeout=0.05).acquire).result()
        with pytest.raises(AcquireTimeout, match=r"within 0\.05 s"):
            InBackground(cache_lock("report", blocking_timeout=0.05).__enter__).result()
    assert cache_lock("report").acquire()


def test_its_name_may_be_bytes_and_have_a_version_and_a_timeout_of_0_is_the_usual_one() -> None:
    with cache_lock("Büro".encode(), timeout=0), cache_lock(b"report", version=2):
        assert Lock("Büro").owned()
        assert Lock("report:2").owned()


def test_it_takes_what_redis_py_takes() -> None:
    """So a call need not be changed."""
    theirs, ours = inspect.signature(Redis.lock).parameters, inspect.signature(cache_lock).parameters
    assert set(theirs) - {"self", "name"} <= set(ours)


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
