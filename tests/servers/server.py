"""What all servers have in common: a folder, a port, a process and its orderly end."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.processes import kill_group

START_TIMEOUT = 60
STOP_TIMEOUT = 60

# Its input ends when we die, however that happens. Then it takes the server down and the folder away, unless we have
# said "done" before.
GUARDIAN = """
read -r word
[ "$word" = done ] && exit
kill -QUIT "$1"; sleep 1; kill -KILL "$1"; rm -rf "$2"
"""


class ServerMissing(Exception):
    """The server's programs are not installed on this machine."""


class ServerFailed(Exception):
    """The server did not start or stop; the message ends with its log."""


class Server:
    """One server, as a context manager: started on entry, gone without a trace on exit.

    ``stop`` and ``kill`` keep the data, and ``start`` brings the server back on it, on the same port.
    """

    name: ClassVar[str]
    driver: ClassVar[str]
    users: ClassVar[tuple[str, ...]]
    stop_signal: ClassVar[signal.Signals]
    kill_signal: ClassVar[signal.Signals]

    def __init__(self, *, options: Sequence[str] = (), max_connections: int = 400) -> None:
        if not find_spec(self.driver):
            raise ServerMissing(f"the Python package {self.driver} is not installed")
        self.options = list(options)
        self.max_connections = max_connections
        self.password = secrets.token_hex(8)
        self.port = free_port()
        self.user = unprivileged(self.users) if os.geteuid() == 0 else None
        self.process: subprocess.Popen[bytes] | None = None
        self.guardian: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make an empty data folder."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""
        raise NotImplementedError

    def connect(self) -> Any:
        """Return a new connection made by the database's own driver."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The server as a DATABASE_URL."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"resourcepool-{self.name.lower()}-"))
        self.data, self.log = self.folder / "data", self.folder / "log"
        try:
            self.own(self.folder)
            self.create()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.kill()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start, and wait until the server answers."""
        self.process = self.spawn(self.command())
        self.guardian = subprocess.Popen(
            ["sh", "-c", GUARDIAN, "guardian", str(self.process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_TIMEOUT
        while not self.answers():
            if self.process.poll() is not None:
                raise ServerFailed(
                    f"{self.name} ended with code {self.process.returncode}:\n{self.last_lines()}"
                )
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not answer within {START_TIMEOUT} s:\n{self.last_lines()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut down in good order."""
        self.end(self.stop_signal)

    def kill(self) -> None:
        """End as in a crash: nothing is flushed, nobody is told."""
        self.end(self.kill_signal)

    def restart(self) -> None:
        """Shut down in good order and come back."""
        self.stop()
        self.start()

    def end(self, sign: signal.Signals) -> None:
        if self.process is None or self.guardian is None:
            return
        self.process.send_signal(sign)
        try:
            self.process.wait(STOP_TIMEOUT)
        except BaseException as reason:
            self.process.kill()
            self.process.wait()
            if isinstance(reason, subprocess.TimeoutExpired):
                raise ServerFailed(
                    f"{self.name} did not stop within {STOP_TIMEOUT} s:\n{self.last_lines()}"
                ) from None
            raise
        finally:
            self.guardian.communicate(b"done\n")
            self.process = self.guardian = None

    def answers(self) -> bool:
        try:
            self.connect().close()
        except Exception:  # noqa: BLE001 (each driver has its own, and all mean "not yet")
            return False
        return True

    def spawn(self, command: list[str]) -> "subprocess.Popen[bytes]":
        identity: dict[str, Any] = {}
        if self.user:
            identity = {"user": self.user[0], "group": self.user[1], "extra_groups": []}
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C reaches only us, and we end the server in order.
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **identity,
            )

    def run(self, command: list[str]) -> None:
        """Run a program of the server's to its end."""
        process = self.spawn(command)
        try:
            code = process.wait(START_TIMEOUT)
        finally:
            kill_group(process)
        if code:
            raise ServerFailed(f"{Path(command[0]).name} failed with code {code}:\n{self.last_lines()}")

    def own(self, path: Path) -> None:
        if self.user:
            shutil.chown(path, *self.user)

    def last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-25:])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def unprivileged(names: Sequence[str]) -> tuple[int, int]:
    """Return user and group of the first of these users that exists: the servers refuse to run as root."""
    for name in names:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise ServerMissing(f"the server refuses to run as root, and there is no user {' or '.join(names)}")


def program(name: str) -> str:
    """Return the path of a server's program; raises ServerMissing when there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    if not found:
        raise ServerMissing(f"{name} is not installed")
    return found
