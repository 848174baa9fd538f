"""Runs an example as a reader would."""

import subprocess
import sys

from tests.spawned import ROOT


def printed_by(example: str) -> str:
    """Return the output of ``python -m examples.EXAMPLE``; fail if it fails."""
    command = [sys.executable, "-m", f"examples.{example}"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
