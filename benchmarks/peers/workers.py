"""Measure task queues as dispensers and timers, and print them as Markdown."""

import os

from benchmarks.fleet import quantile
from benchmarks.peers.contestants import WORKER_PEERS
from benchmarks.peers.environment import PeerMissing, environment
from benchmarks.peers.measuring import PeerFailed, measured

HEAD = (
    "",
    "on",
    "drained, tasks/s",
    "due per second",
    "lag p50 / p99",
    "kept of 200 after kill -9",
    "as it comes",
)


def workers(names: list[str] | None = None) -> bool:
    """Print the table; return whether nobody failed. Who cannot be had here is told, and no failure."""
    rows, failed = [HEAD, ("---",) * len(HEAD)], False
    with environment() as pythons:
        for peer in WORKER_PEERS:
            if names and peer.name not in names:
                continue
            try:
                found = measured(peer, pythons, 1)
            except PeerMissing as missing:
                print(f"  {peer.name} is not measured: {missing}.", flush=True)
                continue
            except PeerFailed as failure:
                failed = True
                print(f"  {failure}", flush=True)
                continue
            lags, kept = found["lags"], found["kept"]
            print(
                f"  {peer.name} is measured; load {os.getloadavg()[0]:.1f};"
                f" drained {found['drained']:,.0f}/s; kept {kept};"
                f" {found['rate']} per second, p50 {quantile(lags, 0.5):.3f} s, p99 {quantile(lags, 0.99):.3f} s",
                flush=True,
            )
            half, most = (f"{quantile(lags, share) * 1_000:,.0f}" for share in (0.5, 0.99))
            rows.append(
                (
                    f"{peer.name} {found['version']}",
                    peer.server,
                    f"{found['drained']:,.0f}",
                    f"{found['rate']:,}" if found["rate"] else "fewer than 100",
                    f"{half} / {most} ms" if found["rate"] else "",
                    f"{kept}",
                    peer.note,
                )
            )
    print("\n".join(f"| {' | '.join(row)} |" for row in rows), flush=True)
    return not failed
