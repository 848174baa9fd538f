"""Processes that never outlive the demo, and how long we wait for them.

Run as a program, this file is the shell around each of them: it asks the kernel to end it with its parent, and
then becomes the module it is to run.
"""

import ctypes
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class DemoError(Exception):
    """What went wrong, in one sentence for the user."""


class Processes:
    """Starts processes, each with a log file of its own; leaving the context ends all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Run `python -m module arguments`. In a session of its own, so that Ctrl-C reaches the demo alone."""
        command = [sys.executable, "-m", "examples.demo.processes", str(os.getpid()), module, *arguments]
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.running[name] = process
        return process

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def check(self) -> None:
        """Raise DemoError when one of them has ended by itself."""
        for name, process in self.running.items():
            if process.poll() is not None:
                lines = self.log(name).read_text(errors="replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
                raise DemoError(f"{name} ended by itself with exit code {process.returncode}: {last.strip()}")

    def wait_for_port(self, file: Path, seconds: float = 20) -> int:
        """The port that a server wrote into its file as soon as it listened."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if file.exists() and (text := file.read_text()).endswith("\n"):
                return int(text)
            self.check()
            time.sleep(0.02)
        raise DemoError(f"{file.stem} did not start to listen within {seconds:g} s")

    def kill(self, name: str) -> None:
        """SIGKILL: it gets no chance to clean up."""
        process = self.running.pop(name)
        process.kill()
        process.wait(timeout=5)

    def stop(self, *names: str, seconds: float = 4) -> None:
        """SIGTERM, and SIGKILL for those that are still there `seconds` later."""
        stopping = [self.running.pop(name) for name in names]
        for process in stopping:
            process.terminate()
        deadline = time.monotonic() + seconds
        for process in stopping:
            try:
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=5)

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *exception: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C must not leave anything behind
        self.stop(*self.running)


def exit_on_sigterm() -> None:
    """Let SIGTERM, and a closed terminal, end this process as sys.exit() does: every `with` is left."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def write_port_file(file: Path, port: int) -> None:
    file.write_text(f"{port}\n")


def die_with_parent(parent: int) -> None:
    """Have the kernel send us SIGTERM when our parent ends, however it ends. Linux only; elsewhere a no-op."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the demo is gone already")


if __name__ == "__main__":
    _, parent_pid, module_name, *rest = sys.argv
    die_with_parent(int(parent_pid))
    sys.argv = [module_name, *rest]
    runpy.run_module(module_name, run_name="__main__", alter_sys=True)
