"""Ends processes: this one normally, and children without leftovers."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

GRACE = 20


def forked(work: Callable[[], object]) -> bool:
    """Call ``work`` in a fork of this process, which ends without cleaning up; return whether it raised nothing."""
    pid = os.fork()
    if not pid:  # it must not return to pytest
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 (shown, and told by the code)
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class ForkedProcess:
    """A fork, with as much of subprocess.Popen as tests need. It is no child of ours: the server tells its end."""

    def __init__(self, pid: int, output: int, end: int) -> None:
        self.pid, self._end = pid, end
        self.returncode: int | None = None
        self.stdout: IO[str] = open(output)  # noqa: SIM115 (closed by its reader)

    def poll(self) -> int | None:
        """Return its code if it has ended (minus the signal that killed it)."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], timeout)[0]:
            self.returncode = int(os.read(self._end, 20))
            os.close(self._end)
        return self.returncode


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Within this block SIGTERM and SIGHUP end this process through every ``finally``, like Ctrl-C."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def finished(process: "subprocess.Popen[Any]", timeout: float) -> int | None:
    """Wait for a process that leads its own session; return its code, or None when it took too long.

    Whatever it leaves behind in its session is killed. On Ctrl-C it may first say what it has to say.
    """
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        raise
    finally:
        kill_session(process.pid)
        kill_group(process)


def kill_session(leader: int) -> None:
    """Kill every process of this session, whatever its group (where there is a /proc)."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(int(entry.name)) == leader:
                os.kill(int(entry.name), signal.SIGKILL)


def kill_group(process: "subprocess.Popen[Any] | ForkedProcess") -> None:
    """Kill the group that ``process`` leads, and wait for its end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
