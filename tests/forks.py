"""Runs children of tests as forks of one process with Django set up, which saves most of their run time.

python -m tests.forks FD     what is to be called comes in through this socket
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connections
from django.utils.functional import empty

from tests import child
from tests.processes import ForkedProcess, kill_group

ROOT = Path(__file__).resolve().parent.parent
PYTHON = [sys.executable, "-u", "-X", "faulthandler"]
LARGEST = 100_000  # bytes of a request
SETTINGS = ("tests.settings", "project.settings")
OF_ITS_OWN = {"DATABASE_URL", "CELERY_BROKER_URL"}  # what may differ in the environment of a fork


class Forks:
    """Starts children by a server of forks; it starts with the first of them.

    The environment that children usually have is that of the first test that starts any, without what that one asks
    for itself: otherwise no child after it could be a fork.
    """

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}

    def child(
        self,
        function: Callable[..., object],
        arguments: Sequence[Any],
        usual: dict[str, str],
        environment: dict[str, str],
    ) -> ForkedProcess | None:
        """Return the child that calls this function; None if it needs a process that was started otherwise.

        A fork can have a database of its own, of the same kind, and a broker; nothing else in its environment is its
        own.
        """
        self._environment = self._environment or of_children(usual)
        changed = changes(self._environment, of_children(environment))
        if changed is None:
            return None
        self._server = self._server or self._started()
        output, their_output = os.pipe()
        end, their_end = os.pipe()
        request = [f"{function.__module__}:{function.__qualname__}", json.dumps(arguments), changed]
        socket.send_fds(self._requests, [json.dumps(request).encode()], [their_output, their_end])
        os.close(their_output)
        os.close(their_end)
        pid = self._requests.recv(20)
        assert pid, f"the server of forks has ended:\n{self._server.communicate()[0].decode()}"
        return ForkedProcess(int(pid), output, end)

    def close(self) -> None:
        """End the server; its children are ended by those who have started them."""
        if self._server is not None:
            self._requests.close()
            kill_group(self._server)
            self._server.communicate()

    def _started(self) -> "subprocess.Popen[bytes]":
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            return subprocess.Popen(
                [*PYTHON, "-m", "tests.forks", str(theirs.fileno())],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # as those of the children: Python remembers what kind of file it is
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )


def of_children(environment: dict[str, str]) -> dict[str, str]:
    """Return what is not about the test's own process."""
    ours = ("PYTEST_", "DJANGO_ALLOW_ASYNC_UNSAFE")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


def changes(usual: dict[str, str], wanted: dict[str, str]) -> dict[str, str] | None:
    """Return what a fork of a process with the usual environment has to change; None if a fork cannot."""
    changed = {name: value for name, value in wanted.items() if usual.get(name) != value}
    kinds = {urlsplit(each.get("DATABASE_URL", "")).scheme for each in (usual, wanted)}
    is_possible = changed.keys() <= OF_ITS_OWN and usual.keys() <= wanted.keys() and len(kinds) == 1
    return changed if is_possible else None


def read_settings_again(environment: dict[str, str]) -> None:
    """Have the settings of this environment; nothing has connected yet."""
    os.environ.update(environment)
    for name in SETTINGS:
        del sys.modules[name]
    settings._wrapped = empty
    for alias in connections:
        with contextlib.suppress(AttributeError):
            del connections[alias]
    connections._settings = None
    del connections.settings
    settings._setup()  # or the first thing that asks for commands finds Django's alone, as nothing is configured


class Server:
    """The process that forks: it answers each request with a pid, and tells the end of each child by its own pipe."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._ends: dict[int, int] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def serve(self) -> bytes | None:
        """Fork whenever asked to; return a request in the child that is to serve it, and None when all is over."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready, _, _ = select.select([self._requests.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, LARGEST)
                self._tell_ends()
            if self._requests.fileno() in ready:
                request, passed, _, _ = socket.recv_fds(self._requests, LARGEST, 2, socket.MSG_CMSG_CLOEXEC)
                if not request or self._is_forked(request, *passed):
                    return request or None

    def _is_forked(self, request: bytes, output: int, end: int) -> bool:
        """Fork; whether this is the child."""
        with contextlib.suppress(Exception):  # the child meets it again, and says so
            importlib.import_module(json.loads(request)[0].split(":")[0])
        assert threading.active_count() == 1, threading.enumerate()
        pid = os.fork()
        if not pid:
            self._become_a_child(output, end)
            return True
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # here too: it may be killed before it gets that far itself
        os.close(output)
        self._ends[pid] = end
        self._requests.send(str(pid).encode())
        return False

    def _become_a_child(self, output: int, end: int) -> None:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (output, end, self._woken, self._wake, *self._ends.values()):
            os.close(number)
        self._requests.close()

    def _tell_ends(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                end = self._ends.pop(found[0])
                with contextlib.suppress(BrokenPipeError):
                    os.write(end, str(os.waitstatus_to_exitcode(found[1])).encode())
                os.close(end)


def main(number: str) -> None:
    django.setup()
    gc.freeze()
    request = Server(socket.socket(fileno=int(number))).serve()
    if request:
        target, arguments, changed = json.loads(request)
        if changed:
            read_settings_again(changed)
        child.call(target, arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
