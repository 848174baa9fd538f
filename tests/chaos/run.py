"""One run: a private server, the relay, the workers, the faults; at the end all workers leave and the checker runs."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import django

from tests.chaos.fleet import Fleet
from tests.chaos.judge import Findings, examine
from tests.chaos.wire import Wire
from tests.concurrency.evidence import Log
from tests.servers import SERVERS, Server

WORKERS, ROWS = 48, 40
# Options with which a killed server forgets what it has committed. PostgreSQL's synchronous_commit=off takes a power
# cut to show: what it does not flush it has given to the operating system a few milliseconds later.
FORGETFUL = {
    "mariadb": ["--innodb-flush-log-at-trx-commit=0"],
    "mysql": ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"],
}
SETTLE = 3.0  # seconds more than the longest lease until the server has noticed that everybody is gone
TICK = 5.0  # seconds between two lines of progress


@dataclass(frozen=True)
class Plan:
    """What is asked for; ``weather`` says what is thrown how often, where that is not the usual.

    It lasts for longer than ``seconds`` where that is too short for so many ``acquisitions``: a busy machine takes
    longer, and is no excuse for an idle run.
    """

    database: str
    seconds: float
    seed: int
    is_forgetful: bool = False
    weather: dict[str, float] = field(default_factory=dict)
    acquisitions: int = 0


def run(plan: Plan, folder: Path) -> Findings:
    """Carry the plan out and return what the judge found; Ctrl-C shortens it."""
    with SERVERS[plan.database](options=FORGETFUL[plan.database] if plan.is_forgetful else []) as server:
        os.environ |= {"DATABASE_URL": server.url, "DJANGO_SETTINGS_MODULE": "tests.chaos.settings"}
        django.setup()
        return _on(server, plan, folder / "evidence")


def _on(server: Server, plan: Plan, path: Path) -> Findings:
    # Only now is it known on which database Django works.
    from resourcepool.conf import ticket_ttl
    from tests.chaos.faults import Faults, Weather
    from tests.chaos.look import look_around, make_tables, note_fences, sessions
    from tests.chaos.terms import TTL

    make_tables(ROWS)
    log = Log(path, who=0)
    with Wire(server.port, plan.database, path, plan.seed) as wire:
        url = urlsplit(server.url)
        through = url._replace(netloc=url.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
        environment = {"DATABASE_URL": through, "DJANGO_SETTINGS_MODULE": "tests.chaos.settings"}
        with Fleet(log, path, plan.seed, environment) as fleet:
            for _ in range(WORKERS):
                fleet.start()
            faults = Faults(Weather(**plan.weather), plan.seed, fleet, wire, server, log)
            began = time.monotonic()
            with suppress(KeyboardInterrupt):
                faults.throw(plan.seconds, Progress(path, plan).is_enough)
            lasted = time.monotonic() - began
            log.tell("ending")
            connected = sessions()
            fleet.leave()
            remains = look_around(connected, max(TTL, ticket_ttl()) + SETTLE)
            note_fences(log)
        findings = examine(log.events(), remains, TTL)
    findings.left_out = list(fleet.left_out)
    if lasted < plan.seconds:
        findings.left_out.append(f"interrupted after {lasted:.0f} of {plan.seconds:.0f} s")
    return findings


class Progress:
    """A line every few seconds: how far it is, and what the evidence says so far."""

    def __init__(self, path: Path, plan: Plan) -> None:
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
