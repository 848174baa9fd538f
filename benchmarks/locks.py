"""How fast locks are, beside those of redis-py, kazoo on ZooKeeper, and PostgreSQL's advisory locks.

python -m benchmarks.locks                          all of them, one after the other; 5 minutes
python -m benchmarks.locks --only raw --only ours   these alone
python -m benchmarks.locks --seconds 1              quick figures, which mean little

own: each process has a lock of its own. same: 8 processes take turns at one; the hand-over is from the moment its
holder begins to release it until the next one has it. 1,000 waiters: threads of 4 processes that want one lock once.
"""

import argparse
import os
import sys
from typing import Any

from benchmarks.peers.contestants import LOCK_PEERS
from benchmarks.peers.environment import Environment, PeerMissing, environment
from benchmarks.peers.measuring import PeerFailed, measured
from benchmarks.peers.ours import our_figures
from tests.processes import terminable
from tests.servers import ServerMissing

OURS = {
    "raw": ("mysql", False),
    "ours": ("mysql", False),
    "ours, Redis hints": ("mysql", True),
    "ours on PostgreSQL": ("postgres", False),
    "ours on PostgreSQL, NOTIFY": ("postgres", True),
}
NAMES = (*OURS, *(peer.name for peer in LOCK_PEERS))
HEAD = (
    *("", "own: 1", "8", "32 processes, cycles/s", "same: cycles/s", "hand-over p50 / p99, ms"),
    "1,000 waiters, served/s",
)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.locks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", choices=NAMES, help="this one alone; may be repeated")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement; default: %(default)g")
    chosen = parser.parse_args(words)
    rows, failed = [HEAD, ("---",) * len(HEAD)], False
    with environment() as pythons:
        for name in chosen.only or NAMES:
            try:
                found = _ours(name, chosen.seconds) if name in OURS else _peer(name, pythons, chosen.seconds)
            except (PeerMissing, ServerMissing) as missing:
                print(f"  {name} is not measured: {missing}.", flush=True)
                continue
            except PeerFailed as failure:
                failed = True
                print(f"  {failure}", flush=True)
                continue
            rows.append(_row(name, found))
            print(f"  {' | '.join(rows[-1])} (load {os.getloadavg()[0]:.1f})", flush=True)
    print("\n".join(f"| {' | '.join(row)} |" for row in rows), flush=True)
    return int(failed)


def _row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    same, waiters = found.get("same"), found.get("waiters")
    return (
        f"{name} {found.get('version', '')}".strip(),
        *(f"{found['own'][count]:,.0f}" for count in ("1", "8", "32")),
        f"{same['rate']:,.0f}" if same else "",
        f"{same['p50'] * 1_000:.1f} / {same['p99'] * 1_000:.1f}" if same else "",
        f"{waiters['served'] / waiters['seconds']:,.0f}" if waiters else "",
    )


def _peer(name: str, pythons: Environment, seconds: float) -> dict[str, Any]:
    return measured(next(peer for peer in LOCK_PEERS if peer.name == name), pythons, seconds)


def _ours(name: str, seconds: float) -> dict[str, Any]:
    on, has_hints = OURS[name]
    raw = "1" if name == "raw" else ""
    return our_figures(name, "with_our_lock.py", on, seconds, has_hints=has_hints, BENCH_RAW=raw)


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
