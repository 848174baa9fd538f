"""One run: a private database and perhaps a relay and a broker, what the model does with them; then the checker."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import django

from tests.concurrency.evidence import Event, Log
from tests.proof.findings import Findings
from tests.proof.plan import Plan
from tests.servers import SERVERS, Server, ServerMissing
from tests.servers.redis import Redis

if TYPE_CHECKING:
    from tests.chaos.fleet import Fleet
    from tests.chaos.wire import Wire

SETTINGS = "tests.chaos.settings"
OUTAGE = 0.5  # seconds for which a server is away


class Model(Protocol):
    """One system under proof. Its module is imported once Django knows the database.

    Attributes:
        KINDS: how the relay recognizes statements, as ``tests.chaos.wire``; empty: there is no relay.
    """

    KINDS: Mapping[str, tuple[str, str]]

    def __init__(self, plan: Any) -> None: ...

    def make(self) -> None:
        """Create the rows."""

    def drive(self, stage: "Stage") -> None:
        """Start processes, have faults happen, and end the processes."""

    def examine(self, events: Sequence[Event]) -> Any:
        """Return the findings of the checker."""


class Stage:
    """What a model drives: processes, their database, the relay before it, and the log of what was done."""

    def __init__(
        self,
        plan: Plan,
        log: Log,
        path: Path,
        url: str,
        server: Server | None,
        wire: "Wire | None",
        broker: Redis | None,
    ) -> None:
        self.plan, self.log, self.path, self.url = plan, log, path, url
        self.server, self.wire, self.broker = server, wire, broker

    @contextlib.contextmanager
    def fleet(self, worker: str, count: int = 0, kind: "type[Fleet] | None" = None) -> "Iterator[Any]":
        """Yield so many processes of this class; at the end of the block they are asked to leave."""
        from tests.chaos.fleet import Fleet

        environment = {"DATABASE_URL": self.url}
        with (kind or Fleet)(self.log, self.path, self.plan.seed, environment, worker) as fleet:
            for _ in range(count):
                fleet.start()
            yield fleet
            fleet.leave()

    def restart(self) -> None:
        """Kill the database server and start it again."""
        from django.db import connection

        assert self.server is not None
        began = time.monotonic()
        connection.close()
        self.server.kill()
        time.sleep(OUTAGE)
        self.server.start()
        self.log.tell("restarted", 0, since=began)

    def restart_broker(self) -> None:
        """Kill the broker and start it again."""
        assert self.broker is not None
        self.log.tell("broker_killed")
        self.broker.kill()
        time.sleep(OUTAGE)
        self.broker.start()


def run(module: str, plan: Plan, folder: Path) -> Findings:
    """Carry out the plan; return the findings of the checker.

    Args:
        module: has ``Model``; its package's ``terms`` may have ``SETTINGS``, ``ENVIRONMENT`` and ``server_options``.
    """
    terms = import_module(f"{module.rpartition('.')[0]}.terms")
    with contextlib.ExitStack() as stack:
        broker = _broker(stack) if getattr(plan, "hints", False) else None
        url, server = f"sqlite:///{folder}/db.sqlite3", None
        if plan.database != "sqlite":
            options = terms.server_options(plan) if hasattr(terms, "server_options") else []
            server = stack.enter_context(SERVERS[plan.database](options=options))
            url = server.url
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": getattr(terms, "SETTINGS", SETTINGS)}
        os.environ |= {"RESOURCEPOOL_HINTS": "" if broker is None else broker.url}
        django.setup()
        model = import_module(module).Model(plan)
        _make_tables(model)
        path = folder / "evidence"
        log = Log(path, who=0)
        wire = stack.enter_context(_wire(model.KINDS, server, plan, path))
        model.drive(Stage(plan, log, path, _through(url, server, wire), server, wire, broker))
        findings: Findings = model.examine(log.events())
        return findings


def _broker(stack: contextlib.ExitStack) -> Redis | None:
    try:
        return stack.enter_context(Redis())
    except ServerMissing as missing:
        print(f"without hints: {missing}", flush=True)
        return None


def _make_tables(model: Model) -> None:
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0, run_syncdb=True)
    model.make()
    connection.close()


@contextlib.contextmanager
def _wire(
    kinds: Mapping[str, tuple[str, str]], server: Server | None, plan: Plan, path: Path
) -> "Iterator[Wire | None]":
    from tests.chaos.wire import Wire

    if server is None or not kinds:
        yield None
        return
    with Wire(server.port, plan.database, path, plan.seed, kinds) as wire:
        yield wire


def _through(url: str, server: Server | None, wire: "Wire | None") -> str:
    """Return the URL of the database behind the relay."""
    if server is None or wire is None:
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.replace(f":{server.port}", f":{wire.port}")).geturl()
