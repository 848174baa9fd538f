"""Run the script of a peer on a private server, in the peer's Python."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import places
from benchmarks.peers.contestants import Peer
from benchmarks.peers.environment import Environment, PeerMissing, version
from benchmarks.peers.zookeeper import ZooKeeper
from tests.processes import finished
from tests.servers import PostgreSQL, ServerMissing

SCRIPTS = Path(__file__).resolve().parent / "scripts"
OURS = {"PYTHONPATH", "DJANGO_SETTINGS_MODULE", "DATABASE_URL", "BENCH_HINTS"}
PATIENCE = 600  # seconds


class PeerFailed(Exception):
    """The peer's script failed; the message ends with its log."""


def measured(peer: Peer, environment: Environment, times: float) -> dict[str, Any]:
    """Return the figures of this peer; raises PeerMissing, PeerFailed.

    Args:
        times: how thoroughly, as for ``Streaming``; of locks: seconds.
    """
    try:
        with place(peer.place) as url:
            python = environment.python(peer)
            return {"version": version(peer, python), **_run(peer, python, url, times)}
    except ServerMissing as missing:
        raise PeerMissing(str(missing)) from missing


@contextlib.contextmanager
def place(name: str) -> Iterator[str]:
    """Yield the URL of a fresh "redis", "postgres" (without tables) or "zookeeper", or none; raises ServerMissing."""
    if name == "redis":
        with places.place(name) as url:
            yield url
    elif name == "folder":
        yield ""
    else:
        with ZooKeeper() if name == "zookeeper" else PostgreSQL() as server:
            yield server.url.replace("postgres://", "postgresql://")


def _run(peer: Peer, python: str, url: str, times: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        figures, log = Path(folder, "figures"), Path(folder, "log")
        usual = {name: value for name, value in os.environ.items() if name not in OURS}
        with figures.open("w") as output, log.open("w") as errors:
            process = subprocess.Popen(
                [python, str(SCRIPTS / peer.script), "measure", str(times)],
                cwd=folder,
                env={**usual, "URL": url, "NOTES": str(Path(folder, "notes"))},
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            code = finished(process, PATIENCE)
        if code != 0:
            raise PeerFailed(f"{peer.name} ended with code {code}:\n{log.read_text()[-2_000:]}")
        return dict(json.loads(figures.read_text().splitlines()[-1]))
