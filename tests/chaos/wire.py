"""The relay between all workers and the server, in its own process; it injects faults on command.

python -m tests.chaos.wire HOST PORT LOG SEED      answers with its port, then obeys, one order a line:

cut                  close any connection
lose renew           lose the reply to the next statement of that kind, after the server has executed it
hold renew 4.5       keep the next one from the server for so many seconds
"""

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Self

from tests.concurrency.evidence import Log
from tests.processes import kill_group
from tests.relay import Relay, Trick
from tests.spawned import ROOT

# How the statements of a kind are recognised: on MariaDB and MySQL, on PostgreSQL.
KINDS = {
    "claim": ("LAST_INSERT_ID(", "SKIP LOCKED) AND"),
    "renew": ("RESOURCEPOOL_PROXY SET BUSY_BEFORE = GREATEST(",) * 2,  # and guard
    "release": ("+ 1, HOLDER = ''",) * 2,
    "handover": ("GRANTED = ",) * 2,  # in line
    "ticket": ("INSERT INTO RESOURCEPOOL_TICKET",) * 2,
    "write": ("FROM CHAOS_PAGE",) * 2,  # the first thing after guard
    "commit": ("COMMIT",) * 2,
    "any": ("",) * 2,
}


class Wire:
    """The process, for whoever gives the orders; ``kinds``: how statements are recognised, as ``KINDS``."""

    def __init__(
        self, port: int, vendor: str, log: Path, seed: int, kinds: Mapping[str, tuple[str, str]] = KINDS
    ) -> None:
        self._words = {kind: words[vendor == "postgresql"] for kind, words in kinds.items()}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.wire", "127.0.0.1", str(port), str(log), str(seed)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert self._process.stdout
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        kill_group(self._process)
        for end in (self._process.stdin, self._process.stdout):
            assert end
            end.close()

    def cut(self) -> None:
        self._order("cut")

    def lose(self, kind: str) -> None:
        self._order(f"lose {kind} {self._words[kind]}")

    def hold(self, kind: str, seconds: float) -> None:
        self._order(f"hold {kind} {seconds} {self._words[kind]}")

    def _order(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line.rstrip() + "\n")
        self._process.stdin.flush()


class Orders:
    """Reads orders and has the relay carry them out; notes in the log when it has."""

    def __init__(self, relay: Relay, log: Log, seed: str) -> None:
        self._relay, self._log = relay, log
        self._chance = random.Random(f"{seed}/wire")
        self._unread = b""

    def read(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._relay.close()
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._obey(line.decode())

    def _obey(self, line: str) -> None:
        what, kind, rest = [*line.split(maxsplit=2), "", ""][:3]
        if what == "cut":
            if self._relay.cut(self._chance.randrange):
                self._log.tell("cut", 0)
        elif what == "lose":
            self._relay.expect(Trick(rest, then=partial(self._log.tell, "reply_lost", 0, text=kind)))
        else:
            seconds, words = [*rest.split(maxsplit=1), ""][:2]
            # A guarded write belongs to a transaction that has locked the row: it must not outlive a killed worker.
            lasts = kind != "write"
            note = partial(self._log.tell, "held_up", 0, text=kind)
            self._relay.expect(Trick(words, float(seconds), lasts, note))


def main(host: str, port: str, log: str, seed: str) -> None:
    relay = Relay(host, int(port))
    print(relay.port, flush=True)
    relay.watch(0, Orders(relay, Log(log, who=0), seed).read)
    relay.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
