"""A Python for each peer: ours where it has the packages, else one in a temporary folder."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.contestants import Peer

PATIENCE = 300  # seconds


class PeerMissing(Exception):
    """The peer cannot be had on this machine; the message is a sentence."""


class Environment:
    """A virtual environment that is made when the first peer needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def python(self, peer: Peer) -> str:
        """Return the Python that has what this peer needs; raises PeerMissing."""
        if all(find_spec(module) for module in peer.modules):
            return sys.executable
        own = self._folder / "bin" / "python"
        if not own.exists():
            _run(
                peer, [sys.executable, "-m", "venv", "--without-pip", str(self._folder)]
            )  # ours does it sooner
        _run(peer, [sys.executable, "-m", "pip", "--python", str(own), "install", "--quiet", *peer.packages])
        return str(own)


@contextlib.contextmanager
def environment() -> Iterator[Environment]:
    """Yield one whose folder is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        yield Environment(Path(folder, "venv"))


def version(peer: Peer, python: str) -> str:
    """Return the version of the peer's first package."""
    asked = f"from importlib.metadata import version; print(version({peer.distribution!r}))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _run(peer: Peer, command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise PeerMissing(f"{' and '.join(peer.packages)} could not be installed ({said[-1]})") from error
