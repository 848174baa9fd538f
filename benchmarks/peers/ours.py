"""Run a script that measures ours as it measures the others: in a process of its own, on a private database."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers.measuring import SCRIPTS, PeerFailed
from benchmarks.places import ROOT, place


def our_figures(
    name: str, script: str, on: str, times: float, *, has_hints: bool = False, **more: str
) -> dict[str, Any]:
    """Return the figures that ``script`` prints; raises PeerFailed, ServerMissing.

    Args:
        name: what the failure calls it.
        on: "mysql" or "postgres".
        times: how thoroughly, or for how many seconds, as the script understands it.
        has_hints: hints through Redis, or NOTIFY on PostgreSQL.
        more: goes into the environment.
    """
    with contextlib.ExitStack() as stack:
        url, hints = stack.enter_context(place(on)), ""
        if has_hints:
            hints = "postgresql" if on == "postgres" else stack.enter_context(place("redis"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="resourcepool-bench-")))
        environment = {
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "PYTHONPATH": str(ROOT),
        }
        environment |= {"BENCH_HINTS": hints, "NOTES": str(folder / "notes"), **more}
        with (folder / "log").open("w") as log:
            done = subprocess.run(
                [sys.executable, str(SCRIPTS / script), "measure", str(times)],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                check=False,
            )
        if done.returncode:
            text = (folder / "log").read_text()
            raise PeerFailed(f"{name} ended with code {done.returncode}:\n{text[-2_000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
