"""Servers that ``.ci/fetch_server`` has extracted, with all their libraries; nothing of them is installed."""

import os
from pathlib import Path

from tests.servers.server import ServerMissing

# Inherited by the processes that run in a copy of this tree, which has none of its own.
SERVERS = Path(os.environ.setdefault("TESTS_SERVERS", str(Path(__file__).parents[2] / ".servers")))


def tree(name: str) -> Path:
    """Return the root folder of the fetched server ``name``; raises ServerMissing with why there is none."""
    root, why = SERVERS / name / "root", SERVERS / f"{name}.why"
    if root.is_dir():
        return root
    said = why.read_text().strip() if why.exists() else "it was not fetched yet; .ci/bootstrap test does that"
    raise ServerMissing(said)


def own_loader(root: Path, *folders: str) -> list[str]:
    """Return how a program of this tree begins: with the loader and the libraries that were fetched with it.

    Args:
        folders: with more libraries, below ``root``.
    """
    loader = next(root.glob("usr/lib/*-linux-gnu*/ld-linux*.so.*"), None)
    if loader is None:
        raise ServerMissing(f"{root} has no loader of programs")
    places = [loader.parent, *(root / folder for folder in folders)]
    return [str(loader), "--library-path", ":".join(map(str, places))]
