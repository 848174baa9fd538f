"""Leases under proof: 48 workers share 40 rows while everything fails; then what they left behind is looked at."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from resourcepool.conf import ticket_ttl
from tests.chaos.faults import Faults, Weather
from tests.chaos.judge import examine
from tests.chaos.look import look_around, make_rows, note_fences, sessions
from tests.chaos.remains import Remains
from tests.chaos.terms import TTL, ChaosPlan
from tests.chaos.wire import KINDS
from tests.concurrency.evidence import Event
from tests.proof.findings import Findings
from tests.proof.run import Stage

WORKERS, ROWS = 48, 40
SETTLE = 3.0  # seconds more than the longest lease until the server has noticed that everybody is gone
TICK = 5.0  # seconds between two lines of progress


class Model:
    """The rows, the workers, and what is left of them."""

    KINDS = KINDS

    def __init__(self, plan: ChaosPlan) -> None:
        self.plan, self.remains, self.left_out = plan, Remains(), list[str]()

    def make(self) -> None:
        make_rows(ROWS)

    def drive(self, stage: Stage) -> None:
        """Ctrl-C shortens it."""
        assert stage.wire is not None
        assert stage.server is not None
        with stage.fleet("tests.chaos.worker:Worker", WORKERS) as fleet:
            weather = Weather(**self.plan.weather)
            faults = Faults(weather, self.plan.seed, fleet, stage.wire, stage.server, stage.log)
            began = time.monotonic()
            with suppress(KeyboardInterrupt):
                faults.throw(self.plan.seconds, Progress(stage.path, self.plan).is_enough)
            if (lasted := time.monotonic() - began) < self.plan.seconds:
                self.left_out.append(f"interrupted after {lasted:.0f} of {self.plan.seconds:.0f} s")
            stage.log.tell("ending")
            connected = sessions()
            fleet.leave()
            self.remains = look_around(connected, max(TTL, ticket_ttl()) + SETTLE)
            note_fences(stage.log)
            self.left_out += fleet.left_out

    def examine(self, events: Sequence[Event]) -> Findings:
        findings = examine(events, self.remains, TTL)
        findings.figures |= {f"LEFT OUT: {what}": "-" for what in self.left_out}
        return findings


class Progress:
    """A line every few seconds: how far it is, and what the evidence says so far."""

    def __init__(self, path: Path, plan: ChaosPlan) -> None:
        self._file, self._plan = path.open("rb"), plan
        self._began = time.monotonic()
        self._next = self._began + TICK
        self._seen = {b"acquired": 0, b"killed": 0, b"server_back": 0}

    def is_enough(self) -> bool:
        """Show the next line when its time has come; return whether there were enough acquisitions by then."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + TICK
            self._show(now - self._began)
        return self._seen[b"acquired"] >= self._plan.acquisitions

    def _show(self, lasted: float) -> None:
        text = self._file.read()
        for what in self._seen:
            self._seen[what] += text.count(b" %s " % what)
        grants, kills, crashes = self._seen.values()
        line = f"{lasted:6.0f} s of {self._plan.seconds:.0f}: {grants:,} acquisitions, {kills} kills"
        print(f"{line}, {crashes} restarts of the server", flush=True)
