"""Hints between real processes, with forks and exits."""

import os
import queue
import sys
from collections.abc import Callable, Iterator

import pytest

from resourcepool import hints
from tests.forks import Forks
from tests.hints.receiver import LONG, End
from tests.hints.services import Service
from tests.spawned import Spawner

HERE = 0x5EED  # an address


class Woken:
    """Counts wake-ups, and waits for them."""

    def __init__(self) -> None:
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        hints.listen(lambda: self.wakes.put(None))
        for _ in ("connection", "echo"):
            self.wait()

    def wait(self) -> None:
        self.wakes.get(timeout=LONG)


def talk_to_self(woken: Woken) -> None:
    hints.send(hints.address())
    woken.wait()


def fork(how_the_child_ends: str) -> None:
    woken, address = Woken(), hints.address()
    talk_to_self(woken)
    pid = os.fork()
    if pid == 0:
        try:
            assert hints.address() != address
            talk_to_self(Woken())
            assert woken.wakes.empty()
            hints.send(address)
            hints.flush(LONG)
        except BaseException:  # noqa: BLE001 (shown, and told by the code)
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        if how_the_child_ends == "_exit":
            os._exit(0)
        sys.exit(0)
    woken.wait()  # the child's hint
    assert os.waitpid(pid, 0)[1] == 0
    assert hints.address() == address
    talk_to_self(woken)  # on the session that the child had inherited
    print("fine", flush=True)


def send_and_end() -> None:
    hints.send(HERE)


@pytest.fixture(scope="module")
def forks_there(running: Service) -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def spawn(database_url: str, forks_there: Forks, lasting: Service) -> Iterator[Spawner]:
    """Start processes that use this service."""
    spawner = Spawner(database_url, forks_there)
    spawner.environment |= {"RESOURCEPOOL_HINTS": lasting.hints_of_children, **lasting.environment}
    yield spawner
    spawner.close()


class TestProcesses:
    @pytest.mark.parametrize("how", ["_exit", "sys.exit"])
    def test_a_forked_child_has_its_own_address_and_leaves_the_parents_sessions_alone(
        self, spawn: Spawner, how: str
    ) -> None:
        said = spawn(fork, how).succeed(timeout=60)
        assert "fine" in said
        assert "WARNING" not in said

    def test_a_hint_sent_just_before_the_end_arrives(self, spawn: Spawner, end: Callable[[str], End]) -> None:
        here = end(f"{HERE:08x}").connected()
        spawn(send_and_end).succeed(timeout=60)
        here.woken()
