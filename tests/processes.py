"""Ending processes: ours in good order, our children's without leftovers."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GRACE = 20


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


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """Kill the group that ``process`` leads, and wait for its end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
