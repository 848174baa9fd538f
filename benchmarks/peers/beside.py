"""Measure the peers one after the other, and print them beside ours."""

import os
from typing import Any

from benchmarks.peers.contestants import ELECTION, PEERS, QUEUE
from benchmarks.peers.environment import PeerMissing, environment
from benchmarks.peers.measuring import PeerFailed, measured
from benchmarks.peers.table import table


def beside(ours: dict[str, Any], on: str, times: int, names: list[str] | None = None) -> bool:
    """Print the tables; return whether nobody failed. Who cannot be had here is told, and no failure.

    Args:
        ours: our figures of the same run.
        on: what ours ran on.
        times: how thoroughly, as for ``Streaming``.
        names: the peers to measure; all by default.
    """
    theirs, failures = [], []
    with environment() as pythons:
        for peer in PEERS:
            if names and peer.name not in names:
                continue
            try:
                theirs.append((peer, measured(peer, pythons, times)))
            except PeerMissing as missing:
                print(f"  {peer.name} is not measured: {missing}.", flush=True)
            except PeerFailed as failure:
                failures.append(failure)
                print(f"  {failure}", flush=True)
            else:
                print(f"  {peer.name} is measured; load {os.getloadavg()[0]:.1f}", flush=True)
    for kind in (QUEUE, ELECTION):
        print(table(kind, ours, on, [one for one in theirs if one[0].kind == kind]), end="\n\n", flush=True)
    return not failures
