"""CPython's own tests of its locks (``test.lock_tests``), run against ours.

Ours are known by their names, so every lock that such a test makes gets a name of its own. Python 3.11 has these tests
in its standard library, unless a distribution has left them out; elsewhere they are skipped, and the log says so.

What cannot apply is listed in ``DIFFERENT``, with the reason.
"""

import contextlib
import itertools
import threading
import unittest
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.locks import Condition, Lock, Semaphore
from resourcepool.locks.registry import current_owner
from tests.eventually import closing

lock_tests = pytest.importorskip("test.lock_tests", reason="this Python comes without its own tests")

OWNED = "ours belongs to the thread that took it, which may take it again: threading's RLock"
NAMED = "repr() of ours shows the name, by which it is known in all processes; threading's an address"
AT_FORK = "ours is nothing that a fork copies: the child holds nothing, and the row stays the parent's"
DIFFERENT = {
    "BaseSemaphoreTests.test_acquire_timeout": "it gives 0.005 s for what is free; a database may take longer",
    "BoundedSemaphoreTests.test_repr": NAMED,
    "BoundedSemaphoreTests.test_release_unacquired": "NotHeld is a RuntimeError, for locks and semaphores alike",
    "LockTests.test_reacquire": OWNED,
    "LockTests.test_different_thread": f"{OWNED}; another thread gets NotHeld",
    "LockTests.test_state_after_timeout": OWNED,
    "LockTests.test_at_fork_reinit": AT_FORK,
    "BaseLockTests.test_repr": NAMED,
    "BaseLockTests.test_locked_repr": f"{NAMED}; and repr() asks no database",
    "ConditionTests.test_acquire": "threading's own Lock is none for our Condition: no other process sees it",
}
# Not run: EventTests, SemaphoreTests, BarrierTests. There is no Event, and no semaphore without a bound. Our Barrier is
# kazoo's, which is created and removed, not threading's, which counts to N.

_numbers = itertools.count(1)


class OurLock(Lock):
    """A lock with a name of its own, and the private names by which CPython's tests look into theirs."""

    def __init__(self) -> None:
        super().__init__(f"lock {next(_numbers)}")

    def acquire(self, blocking: bool = True, timeout: object = None) -> Any:
        """Acquire; OverflowError for what threading calls too long, which is a BadOption (a ValueError) here."""
        if isinstance(timeout, int | float) and timeout >= threading.TIMEOUT_MAX:
            if timeout > threading.TIMEOUT_MAX:
                with pytest.raises(BadOption):
                    super().acquire(blocking, timeout)
                raise OverflowError
            timeout = -1  # the longest there is
        return super().acquire(blocking, timeout)

    def _is_owned(self) -> bool:
        return self.owned()

    def _recursion_count(self) -> int:
        hold = current_owner().holds.get(self.key)
        return 0 if hold is None else hold.count

    def _release_save(self) -> Any:
        hold = self._require_hold("wait")
        hold.leases[0].release()
        return hold


class OurCondition(Condition):
    """A condition with a lock of its own."""

    def __init__(self) -> None:
        super().__init__(OurLock())


class OurSemaphore(Semaphore):
    """A semaphore with a name of its own, which says True where ours gives what is held."""

    def __init__(self, value: int = 1) -> None:
        super().__init__(f"semaphore {next(_numbers)}", value)

    def acquire(self, *given: Any, **more: Any) -> Any:
        """Acquire, and say whether."""
        return super().acquire(*given, **more) is not None


def start_and_close(start: Any) -> Any:
    """Return what starts a thread that closes its connections at its end."""
    return lambda function, args: start(lambda: closing(function, *args), ())


class _AnyMachine:
    """How late an answer may come is not for a test to say: another job may have the processor."""

    __test__ = False  # pytest would run them all

    def assertTimeout(self, actual: float, expected: float) -> None:  # noqa: N802 (its name in unittest)
        assert actual >= expected * 0.6


class Locks(_AnyMachine, lock_tests.LockTests):  # type: ignore[misc, name-defined]
    """Those of a lock that is not taken again."""

    locktype = OurLock


class RLocks(_AnyMachine, lock_tests.RLockTests):  # type: ignore[misc, name-defined]
    """Those of a lock that its holder may take again."""

    locktype = OurLock


class Conditions(_AnyMachine, lock_tests.ConditionTests):  # type: ignore[misc, name-defined]
    """Those of a condition."""

    condtype = OurCondition


class Semaphores(_AnyMachine, lock_tests.BoundedSemaphoreTests):  # type: ignore[misc, name-defined]
    """Those of a semaphore with a bound."""

    semtype = OurSemaphore


def _applicable() -> list[unittest.TestCase]:
    return [
        case(name)
        for case in (Locks, RLocks, Conditions, Semaphores)
        for name in unittest.defaultTestLoader.getTestCaseNames(case)
        if not any(f"{base.__name__}.{name}" in DIFFERENT for base in case.__mro__ if name in vars(base))
    ]


@pytest.mark.parametrize(
    "case", _applicable(), ids=lambda case: f"{type(case).__name__}.{case._testMethodName}"
)
def test_it_does_what_cpython_expects(case: unittest.TestCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_tests, "start_new_thread", start_and_close(lock_tests.start_new_thread))
    # The threads of the package (the keeper, the waiters) stay: they are no threads that a test has left running.
    monkeypatch.setattr(lock_tests.BaseTestCase, "setUp", lambda self: None)
    monkeypatch.setattr(lock_tests.BaseTestCase, "tearDown", lambda self: None)
    monkeypatch.setattr(lock_tests.threading_helper, "wait_threads_exit", lambda *_: contextlib.nullcontext())
    result = unittest.TestResult()
    case.run(result)
    for _, trace in [*result.errors, *result.failures]:
        pytest.fail(trace, pytrace=False)
    assert result.testsRun == 1


def test_what_does_not_apply_is_there() -> None:
    for kind, name in (one.split(".") for one in DIFFERENT):
        assert name in vars(getattr(lock_tests, kind))
