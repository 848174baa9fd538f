"""The figures of all as Markdown: a row for each task queue, and one for each election."""

import statistics
from typing import Any

from benchmarks.fleet import quantile
from benchmarks.peers.contestants import DURABLE, ELECTION, QUEUE, Peer

HEADS = {
    QUEUE: ("tasks/s, 1", "tasks/s, 8", "submit/s", "submit/s, 10,000 at once", "submit to start, p50 / p99"),
    ELECTION: ("after kill -9, median (longest)", "after a clean stop, median (longest)"),
}
OURS = {
    QUEUE: f"{DURABLE}; one leader, 1 or 8 lanes; in order, and fenced; many: `submit_many`",
    ELECTION: f"{DURABLE}; terms of 2 s; until the next leader begins a task",
}


def table(kind: str, ours: dict[str, Any], on: str, theirs: list[tuple[Peer, dict[str, Any]]]) -> str:
    """Return the table of this kind.

    Args:
        ours: our figures, by the same names as a peer's; parts that were not measured are absent.
        on: what ours ran on.
        theirs: the peers that were measured, with their figures.
    """
    rows = [["", "on", *HEADS[kind], "as it comes"]]
    rows.append(["---", "---", *("--:" for _ in HEADS[kind]), "---"])
    if ours:
        rows.append(["resourcepool", on, *_cells(kind, ours), OURS[kind]])
    rows += [
        [f"{peer.name} {figures['version']}", peer.server, *_cells(kind, figures), peer.note]
        for peer, figures in theirs
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(kind: str, figures: dict[str, Any]) -> list[str]:
    if kind == ELECTION:
        return [_failovers(figures.get(way)) for way in ("kill -9", "clean stop")]
    speeds = [figures.get(name) for name in ("done 1", "done 8", "submit", "submit_many")]
    return [*("" if speed is None else f"{speed:,.0f}" for speed in speeds), _starts(figures.get("start"))]


def _failovers(took: list[float] | None) -> str:
    return f"{_ms(statistics.median(took))} ({_ms(max(took))}) ms" if took else ""


def _starts(took: list[float] | None) -> str:
    took = sorted(took or ())
    return f"{_ms(quantile(took, 0.5))} / {_ms(quantile(took, 0.99))} ms" if took else ""


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:,.{1 if seconds < 0.01 else 0}f}"
