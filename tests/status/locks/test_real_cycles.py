"""Threads that wait for each other's locks, as the readings see them."""

import os
import threading
from collections.abc import Iterator

import pytest

from resourcepool.locks import Lock, registry
from resourcepool.status.locks.cycles import cycles
from resourcepool.status.locks.lock_status import lock_named
from tests.committed import *  # noqa: F403 (fixtures)
from tests.eventually import InBackground, eventually


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> Iterator[None]:
    yield
    registry.forget()


def test_two_threads_that_wait_for_each_other_are_found_until_one_gives_up() -> None:
    both, enough = threading.Barrier(2), threading.Event()

    def take(first: str, second: str) -> None:
        with Lock(first):
            both.wait()
            while not enough.is_set():
                if Lock(second).acquire(timeout=1):
                    Lock(second).release()
                    return

    work = [InBackground(lambda: take("a", "b")), InBackground(lambda: take("b", "a"))]
    (found,) = eventually(cycles)
    (status,) = lock_named("a")
    enough.set()
    for one in work:
        one.result()
    assert {link.waits_for for link in found.links} == {"a", "b"}
    assert {link.who.split("/")[1] for link in found.links} == {str(os.getpid())}
    assert (status.held, status.holders[0].holder in {link.holder for link in found.links}) == (1, False)
    assert cycles() == []
