"""Measure ours and other task queues as dispensers and timers, and print them as Markdown."""

import os
from typing import Any

from benchmarks.fleet import quantile
from benchmarks.peers.contestants import WORKER_PEERS
from benchmarks.peers.environment import Environment, PeerMissing, environment
from benchmarks.peers.measuring import PeerFailed, measured
from benchmarks.peers.ours import our_figures
from tests.servers import ServerMissing

HEAD = (
    "",
    "on",
    "drained, tasks/s",
    "due per second",
    "lag p50 / p99",
    "kept of 200 after kill -9",
    "as it comes",
)


OURS = {
    "resourcepool by polling": ("mysql", "MariaDB", False),
    "resourcepool, hints by Redis": ("mysql", "MariaDB", True),
    "resourcepool on PostgreSQL, hints by NOTIFY": ("postgres", "PostgreSQL", True),
}
OUR_NOTE = "each commit durable; 8 processes of 2 threads for timers; 20 tasks at a time"
NAMES = (*OURS, *(peer.name for peer in WORKER_PEERS))


def workers(names: list[str] | None = None) -> bool:
    """Measure ours and the others in turn; print the table; return whether nobody failed.

    Who cannot be had here is told, and no failure.
    """
    rows, failed = [HEAD, ("---",) * len(HEAD)], False
    with environment() as pythons:
        for name in names or NAMES:
            try:
                found, words = _figures(name, pythons)
            except (PeerMissing, ServerMissing) as missing:
                print(f"  {name} is not measured: {missing}.", flush=True)
                continue
            except PeerFailed as failure:
                failed = True
                print(f"  {failure}", flush=True)
                continue
            rows.append(_row(found, *words))
            print(f"  {' | '.join(rows[-1])} (load {os.getloadavg()[0]:.1f})", flush=True)
    print("\n".join(f"| {' | '.join(row)} |" for row in rows), flush=True)
    return not failed


def _figures(name: str, pythons: Environment) -> tuple[dict[str, Any], tuple[str, str, str]]:
    """Return its figures; and its name, where it keeps its tasks, and a note."""
    if name in OURS:
        on, server, has_hints = OURS[name]
        return our_figures(name, "workers_ours.py", on, 1, has_hints=has_hints), (name, server, OUR_NOTE)
    peer = next(peer for peer in WORKER_PEERS if peer.name == name)
    found = measured(peer, pythons, 1)
    return found, (f"{peer.name} {found['version']}", peer.server, peer.note)


def _row(found: dict[str, Any], name: str, server: str, note: str) -> tuple[str, ...]:
    half, most = (f"{quantile(found['lags'], share) * 1_000:,.0f}" for share in (0.5, 0.99))
    return (
        name,
        server,
        f"{found['drained']:,.0f}",
        f"{found['rate']:,}" if found["rate"] else "fewer than 100",
        f"{half} / {most} ms" if found["rate"] else "",
        f"{found['kept']}",
        note,
    )
