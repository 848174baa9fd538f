"""Real Python processes for tests: started, read from, and killed if they outlive the test."""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.forks import PYTHON, ROOT, Forks
from tests.processes import ForkedProcess, kill_group

__all__ = ["ROOT", "Child", "Spawner"]


class Child:
    """A running child; ``lines`` is what it has printed so far, errors included."""

    def __init__(self, process: "subprocess.Popen[str] | ForkedProcess") -> None:
        self.process = process
        self.lines: list[str] = []
        self._unread: queue.Queue[str] = queue.Queue()
        # Read all the time, or a child that prints much would stop at a full pipe.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def line(self, containing: str = "", timeout: float = 90) -> str:
        """Return the next line that contains this text; fails when none comes in time."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._unread.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"no line with {containing!r} within {timeout} s:\n{self.output}"
                ) from None
            if containing in line:
                return line.rstrip("\n")

    def wait(self, timeout: float = 90) -> int:
        """Wait for its end and return its code (minus the signal that killed it)."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.output}") from None
        self._reader.join(5)
        return code

    def succeed(self, timeout: float = 90) -> str:
        """Wait for its end, which must be a success; return what it has printed."""
        code = self.wait(timeout)
        assert code == 0, f"ended with code {code}:\n{self.output}"
        return self.output

    def send(self, number: int) -> None:
        """Send a signal: SIGKILL is a crash, SIGSTOP a pause, SIGTERM a request to leave."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Crash it, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        kill_group(self.process)
        self._reader.join(5)
        if self.process.stdout and not self._reader.is_alive():
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            self._unread.put(line)


class Spawner:
    """``spawn(function, *arguments)`` or ``spawn("path/of/script.py", *arguments)``: a Child on the test's database.

    The function is one at the top of an importable module, the arguments are JSON for it and words for a script.
    Given ``forks`` such a function runs in a fork, also on another database of the same kind, or with another broker;
    what has any other environment of its own is a program of its own.
    """

    def __init__(self, url: str, forks: Forks | None = None) -> None:
        self.environment = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]}
        self.children: list[Child] = []
        self._forks = forks

    def __call__(self, target: "Callable[..., object] | str", *arguments: Any, **environment: str) -> Child:
        usual = {**os.environ, **self.environment}
        everything = {**usual, **environment}
        process: subprocess.Popen[str] | ForkedProcess | None = None
        if callable(target) and self._forks:
            process = self._forks.child(target, arguments, usual, everything)
        child = Child(process or started(target, arguments, everything))
        self.children.append(child)
        return child

    def close(self) -> None:
        for child in self.children:
            child.close()


def started(
    target: "Callable[..., object] | str", arguments: tuple[Any, ...], environment: dict[str, str]
) -> "subprocess.Popen[str]":
    """Start a program of its own."""
    if callable(target):
        words = ["-m", "tests.child", f"{target.__module__}:{target.__qualname__}", json.dumps(arguments)]
    else:
        words = [target, *map(str, arguments)]
    return subprocess.Popen(
        [*PYTHON, *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
