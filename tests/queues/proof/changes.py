"""Changes to the servers: one at a time, until the queues are settled again, or many at once."""

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from django.db import connection

from tests.chaos.story import Span
from tests.chaos.wire import Wire
from tests.concurrency.evidence import Log
from tests.queues.proof.database_state import last_move, moved_since, queue_counts
from tests.queues.proof.evidence import Change
from tests.queues.proof.processes import ServerProcesses
from tests.queues.proof.terms import HEARTBEAT, JUDGE_DEAD, UNWORKED
from tests.servers import Server

if TYPE_CHECKING:
    from tests.chaos.fleet import Member

PATIENCE = 45.0  # seconds in which all is settled, also on a crowded machine
LOOK = 0.03
STALL = 0.1  # seconds by which this process was late, because the machine was busy
MIN_SERVERS, MAX_SERVERS = 3, 9  # servers during a storm
LOST = ("any", "commit", "plan", "renew")


class Changes:
    """Carries out changes and records their effects."""

    def __init__(
        self, processes: ServerProcesses, wire: Wire | None, server: Server | None, log: Log, seed: int
    ) -> None:
        self.made: list[Change] = []
        self._processes, self._wire, self._server, self._log = processes, wire, server, log
        self._chance = random.Random(f"{seed}/changes")

    def start(self, servers: int) -> None:
        self._until_settled(
            f"start of {servers}", lambda: [self._processes.start() for _ in range(servers)], servers
        )

    def join(self) -> None:
        self._one("join", self._processes.start, +1)

    def leave(self) -> None:
        self._one(
            "leave, told by SIGTERM", lambda: self._processes.ask_to_leave(self._any(), signal.SIGTERM), -1
        )

    def close(self) -> None:
        self._one("leave, by itself", lambda: self._processes.ask_to_leave(self._any(), signal.SIGUSR2), -1)

    def kill(self) -> None:
        self._one("kill -9", lambda: self._processes.destroy(self._any()), -1)

    def pause(self) -> None:
        """Stop a server until it is presumed dead and replaced, then continue it: it registers again.

        If it stands still in a guarded transaction, the queue of that is locked, and stays where it is.
        """
        self._one("SIGSTOP", lambda: self._processes.stop(self._any(), 0.0), -1, may_linger=True)
        self._one("SIGCONT", lambda: self._processes.go_on(all_of_them=True), +1)

    def blink(self) -> None:
        """Stop a server, for less than the interval after which it is presumed dead."""
        self._processes.stop(self._any(), JUDGE_DEAD - HEARTBEAT)
        self._let_go_on(self._processes)
        time.sleep(JUDGE_DEAD)  # it may have lost its lease all the same, and count twice until then
        self._until_settled("SIGSTOP, briefly", lambda: None, len(self._processes.members))

    def rest(self) -> None:
        """Let them work, for longer than a queue may be left alone."""
        time.sleep(UNWORKED + HEARTBEAT)

    def restart(self) -> None:
        """Kill the database server and bring it back."""
        if self._server is not None:
            self._until_settled("restart of the database", self._restart_server, len(self._processes.members))
            time.sleep(JUDGE_DEAD)  # until servers that lost their lease have registered again
            self._until_settled("after the restart", lambda: None, len(self._processes.members))

    def storm(self, seconds: float, servers: int) -> None:
        """Make many changes at once, and at the end return to this number of servers."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._gust()
            self._processes.go_on()
            time.sleep(self._chance.uniform(0, 0.6))
        self._let_go_on(self._processes)
        while len(self._processes.members) > servers:
            self._processes.ask_to_leave(self._any(), signal.SIGTERM)
        self._until_settled("storm", lambda: self._come_back(servers), servers)

    def _gust(self) -> None:
        able = self._processes.running()
        act = self._chance.choice(["join", "leave", "kill", "stop", "stop", "hold", "lose", "cut"])
        if act == "join" and len(self._processes.members) < MAX_SERVERS:
            self._processes.start()
        elif act in ("leave", "kill") and len(able) > MIN_SERVERS:
            leave = (
                self._processes.destroy
                if act == "kill"
                else lambda it: self._processes.ask_to_leave(it, signal.SIGTERM)
            )
            leave(self._any())
        elif act == "stop" and len(able) > MIN_SERVERS and self._wire is not None:
            self._processes.stop(
                self._any(), self._chance.choice([0.5, JUDGE_DEAD - HEARTBEAT, JUDGE_DEAD + 1.5])
            )
        elif self._wire is not None and act == "hold":
            self._wire.hold("guard", JUDGE_DEAD + 1.5)
        elif self._wire is not None and act == "lose":
            self._wire.lose(self._chance.choice(LOST))
        elif self._wire is not None and act == "cut":
            self._wire.cut()

    def _come_back(self, servers: int) -> None:
        while len(self._processes.members) < servers:
            self._processes.start()

    def _let_go_on(self, processes: ServerProcesses) -> None:
        while len(processes.running()) < len(processes.members):
            processes.go_on()
            time.sleep(LOOK)

    def _any(self) -> "Member":
        return self._chance.choice(self._processes.running())

    def _one(self, name: str, do: Callable[[], object], more: int, *, may_linger: bool = False) -> None:
        time.sleep(HEARTBEAT)  # so that all servers have read their queues
        before, move = queue_counts().counts, last_move()
        is_settled, span = self._await(do, len(before) + more, UNWORKED if may_linger else PATIENCE)
        after = frozenset(queue_counts().counts) if is_settled else frozenset()
        self._note(Change(name, span, before, after, moved_since(move), is_settled or may_linger))

    def _until_settled(self, name: str, do: Callable[[], object], servers: int) -> None:
        is_settled, span = self._await(do, servers)
        self._note(Change(name, span, is_settled=is_settled))

    def _note(self, change: Change) -> None:
        self.made.append(change)
        words = f"{change.moved} moved, {change.least} had to" if change.after else ""
        print(f"{change.span.end:10.1f}  {change.name:26}{change.seconds:6.2f} s  {words}", flush=True)

    def _await(self, do: Callable[[], object], servers: int, patience: float = PATIENCE) -> tuple[bool, Span]:
        began = time.monotonic()
        do()
        while not (is_settled := queue_counts().is_settled(servers)) and time.monotonic() < began + patience:
            time.sleep(LOOK)
        return is_settled, Span(began, time.monotonic())

    def _restart_server(self) -> None:
        assert self._server is not None
        connection.close()
        down = time.monotonic()
        self._server.kill()
        self._log.tell("server_killed", 0, at=down)
        time.sleep(self._chance.uniform(0, 2))
        self._server.start()
        self._log.tell("server_back", 0, since=down)


class Watch(threading.Thread):
    """Notes when this machine was too busy to let us run."""

    def __init__(self, log: Log) -> None:
        super().__init__(daemon=True)
        self._log, self._is_over = log, threading.Event()

    def run(self) -> None:
        before = time.monotonic()
        while not self._is_over.wait(0.01):
            now = time.monotonic()
            if now - before > STALL:
                self._log.tell("stalled", 0, since=before)
            before = now

    def end(self) -> None:
        self._is_over.set()
        self.join()
