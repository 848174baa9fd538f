"""The workers: started, killed, stopped, continued, and asked to leave."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.chaos.zygote import disguised
from tests.concurrency.evidence import Log
from tests.processes import kill_group
from tests.spawned import ROOT

SHIFTS = ("", "+1h", "-1h")
SHARES = (2, 1, 1)  # every other worker's clock is right
GRACE = 30  # seconds in which everybody has left


@dataclass
class Member:
    """One living worker; ``stopped_until`` is when a stopped one goes on."""

    number: int
    pid: int
    shift: str
    stopped_until: float | None = None


class Fleet:
    """As many workers as there are slots; whoever is killed is replaced at once.

    Args:
        worker: the class of the workers, as ``tests.chaos.zygote`` takes it.
    """

    def __init__(self, log: Log, path: Path, seed: int, environment: dict[str, str], worker: str) -> None:
        self.log, self.worker = log, worker
        # The clock of SQLite is that of the process: all of them have the same one.
        shifts = SHIFTS[:1] if environment["DATABASE_URL"].startswith("sqlite") else SHIFTS
        self.members: list[Member] = []
        self.left_out: list[str] = []
        self._chance = random.Random(f"{seed}/fleet")
        self._numbers = 0
        self._zygotes = {
            shift: self._zygote(path, seed, environment | disguise)
            for shift in shifts
            if (disguise := self._disguise(shift)) is not None
        }
        for shift, zygote in self._zygotes.items():
            self._check(shift, zygote)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for zygote in self._zygotes.values():
            kill_group(zygote)
            for end in (zygote.stdin, zygote.stdout):
                assert end
                end.close()

    def start(self) -> Member:
        """Start one more worker."""
        self._numbers += 1
        shifts = list(self._zygotes)
        (shift,) = self._chance.choices(shifts, SHARES[: len(shifts)])
        zygote = self._zygotes[shift]
        assert zygote.stdin
        assert zygote.stdout
        self.log.tell("started", self._numbers, text=shift)
        zygote.stdin.write(f"{self._numbers}\n")
        zygote.stdin.flush()
        number, pid = map(int, zygote.stdout.readline().split())
        member = Member(number, pid, shift)
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        """Kill -9, and replace it."""
        self._send(member, signal.SIGKILL)
        self.log.killed(member.number)
        self.members.remove(member)
        self.start()

    def stop(self, member: Member, seconds: float) -> None:
        """Let it stand still for so long."""
        self._send(member, signal.SIGSTOP)
        member.stopped_until = time.monotonic() + seconds
        self.log.tell("stopped", member.number, text=f"{seconds:g}")

    def go_on(self, *, all_of_them: bool = False) -> None:
        """Let those continue whose time has come."""
        for member in self.members:
            if member.stopped_until and (all_of_them or member.stopped_until <= time.monotonic()):
                member.stopped_until = None
                self.log.tell("continued", member.number)
                self._send(member, signal.SIGCONT)

    def running(self) -> list[Member]:
        """Return those that are not stopped."""
        return [member for member in self.members if member.stopped_until is None]

    def leave(self) -> None:
        """Ask everybody to leave, and wait until they have."""
        self.go_on(all_of_them=True)
        for member in self.members:
            self._send(member, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self.members and time.monotonic() < deadline:
            self.members = [member for member in self.members if lives(member.pid)]
            time.sleep(0.02)
        for member in self.members:
            self.log.tell("stayed", member.number)
            self._send(member, signal.SIGUSR1)  # it prints where its threads are

    def _send(self, member: Member, number: int) -> None:
        try:
            os.kill(member.pid, number)
        except ProcessLookupError:
            self.log.tell("vanished", member.number)

    def _disguise(self, shift: str) -> dict[str, str] | None:
        disguise = disguised(shift) if shift else {}
        if disguise is None and not self.left_out:
            self.left_out.append("clocks moved by an hour: libfaketime is not installed (Debian: libfaketime)")
        return disguise

    def _zygote(self, path: Path, seed: int, environment: dict[str, str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.zygote", str(path), str(seed), self.worker],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def _check(self, shift: str, zygote: "subprocess.Popen[str]") -> None:
        """Wait until it is ready; its clock must be wrong if that was wanted, or nothing would be tested."""
        assert zygote.stdout
        word, *clock = zygote.stdout.readline().split() or ["nothing"]
        assert word == "ready", f"a zygote did not start: {word}"
        off = float(clock[0]) - time.time()
        assert abs(off - {"": 0, "+1h": 3600, "-1h": -3600}[shift]) < 60, f"clock {shift!r} is off by {off} s"


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
