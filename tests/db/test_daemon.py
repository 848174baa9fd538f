"""A background thread never runs twice, even if a signal handler raises while it is started."""

import sys
import threading
from typing import Any

import pytest

from resourcepool.db.threads import Daemon
from tests.eventually import at_once, eventually
from tests.interruptions import FILES, at_each_line


class Work:
    """Goes on until it is told to end; knows how many threads did it at the same time."""

    def __init__(self) -> None:
        self.now: list[int] = []
        self.most = self.begun = 0
        self.go_on = threading.Event()

    def __call__(self) -> None:
        self.begun += 1
        self.now.append(threading.get_ident())
        self.most = max(self.most, len(self.now))
        self.go_on.wait(10)
        self.now.remove(threading.get_ident())


@pytest.fixture
def work() -> Work:
    return Work()


def test_it_works_in_one_thread_however_many_see_to_it(work: Work) -> None:
    daemon = Daemon("test", work)
    assert daemon.is_healthy
    at_once(10, lambda _: daemon.ensure_started())
    eventually(lambda: daemon.is_running)
    daemon.ensure_started()
    assert daemon.is_healthy
    work.go_on.set()
    eventually(lambda: not daemon.is_running)
    assert work.begun == 1


def test_one_that_has_ended_is_started_again(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        work()
        raise LookupError("a mistake in the program")

    daemon = Daemon("test", fail)
    work.go_on.set()
    for count in (1, 2):
        daemon.ensure_started()
        eventually(lambda count=count: work.begun == count and not daemon.is_running)  # type: ignore[misc]
        assert not daemon.is_healthy
    assert "resourcepool-test failed" in caplog.text


# Interrupted, ``Thread.start`` may release the lock that the new thread has just taken for its own ``Event.set``: then
# that thread ends with an error, which Python prints, and a moment later than it looks alive.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("then", ["see to it again", "raise"])
def test_there_is_one_thread_wherever_a_signal_handler_comes_in(then: str) -> None:
    daemons: list[tuple[Daemon, Work]] = []

    def prepare() -> None:
        work = Work()
        daemons.append((Daemon("test", work), work))

    def again() -> None:
        daemons[-1][0].ensure_started()

    def runs() -> bool:
        again()  # as each use does
        return daemons[-1][0].is_running

    asked: dict[str, Any] = {} if then == "raise" else {"handler": again}
    places = at_each_line(again, prepare, files=[*FILES, "/threading.py"], since=(), **asked)
    count = 0
    for count, place in enumerate(places, 1):  # noqa: B007
        eventually(runs, because=lambda place=place: place)  # type: ignore[misc]
        assert daemons[-1][0].is_healthy
    assert count > 10
    eventually(lambda: all(work.most for _, work in daemons))  # a thread that runs may not work yet
    for _, work in daemons:
        work.go_on.set()
    eventually(lambda: not any(work.now for _, work in daemons))
    assert {work.most for _, work in daemons} == {1}


def test_without_more_threads_it_says_so_and_is_started_later(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    daemon = Daemon("test", work)
    patch = "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread"
    with monkeypatch.context() as patched:
        patched.setattr(threading, patch, refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            daemon.ensure_started()
    work.go_on.set()
    daemon.ensure_started()
    eventually(lambda: work.begun == 1)
